// Waits for a timer and computes in turns; between the lines "begin" and "end" it measures its share of waiting.
let waited = 0, sink = 0;

function compute(ms) {
  const end = process.cpuUsage().user / 1000 + ms;
  while (process.cpuUsage().user / 1000 < end) for (let i = 0; i < 20000; i++) sink = (sink * 31 + i) | 0;
}

function round() {
  const begun = performance.now();
  setTimeout(() => {
    waited += performance.now() - begun;
    compute(17);
    round();
  }, 31);
}

round();
console.log('ready');
let begun = performance.now(), before = waited;
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  if (line.startsWith('end')) {
    console.log(`rounds sleep ${((waited - before) / (performance.now() - begun)).toFixed(5)}`);
    console.log('done');
  }
  begun = performance.now();
  before = waited;
});
