# Sleeps and computes in turns; between the lines "begin" and "end" it measures its share of sleeping, and prints it.
import sys, threading, time

slept = 0.0


def compute(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        for i in range(200):
            n += i * i
    return n


def rest(seconds):
    global slept
    begun = time.perf_counter()
    time.sleep(seconds)
    slept += time.perf_counter() - begun


def rounds():
    while True:
        rest(0.031)
        compute(0.017)


threading.Thread(target=rounds, name="rounds", daemon=True).start()
print("ready", flush=True)
begun, before = time.perf_counter(), slept
for line in sys.stdin:
    if line.startswith("end"):
        print("rounds sleep %.5f" % ((slept - before) / (time.perf_counter() - begun)), flush=True)
        print("done", flush=True)
    begun, before = time.perf_counter(), slept
