// The console: lines to the server and their answers, with completion by Tab and the lines before by arrows, as
// `throng console` has them.

import { h } from "../elements/dom.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { command, commandObject, Refused } from "./port.ts";

/** Answers that stay on the page. */
const ANSWERS_MAX = 200;
/** Lines that can be had again. */
const LINES_MAX = 200;

/** What may be put in place of the last word, as far as all of it agree. */
export function commonBeginning(words: string[]): string {
  let common = words[0] ?? "";
  for (const word of words) while (!word.startsWith(common)) common = common.slice(0, -1);
  return common;
}

/** A line whose last word is replaced. */
export function withLastWord(line: string, word: string): string {
  return line.replace(/\S*$/, () => word);
}

export function terminal({ signIn }: Surroundings): Panel {
  const output = h("div", { class: "answers", role: "log", "aria-label": "Answers", tabindex: "0" });
  const input = h("input", { type: "text", class: "line", "aria-label": "Command", placeholder: "help", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const choices = h("div", { class: "choices", role: "status" });
  const lines: string[] = [];
  let place = 0;

  const tell = (line: string, text: string, isBad: boolean) => {
    output.append(h("div", { class: "asked" }, `> ${line}`), h("pre", { class: isBad ? "bad" : "" }, text.replace(/\n$/, "")));
    while (output.childElementCount > 2 * ANSWERS_MAX) output.firstElementChild?.remove();
    output.scrollTop = output.scrollHeight;
  };
  const carryOut = async (line: string) => {
    try {
      tell(line, await command(line), false);
    } catch (error) {
      const isForKey = error instanceof Refused && error.status === 401;
      if (isForKey && (await signIn())) {
        try {
          return tell(line, await command(line), false);
        } catch (again) {
          return tell(line, again instanceof Error ? again.message : String(again), true);
        }
      }
      tell(line, error instanceof Error ? error.message : String(error), true);
    }
  };
  const complete = async () => {
    const line = input.value;
    const asked = line === "" ? "complete" : `complete ${line}`;
    // The last word may be empty: then whatever comes next is wanted.
    const { completions } = await commandObject<{ completions: string[] }>(asked).catch(() => ({ completions: [] as string[] }));
    if (input.value !== line) return;
    const [only] = completions;
    if (completions.length === 1 && only !== undefined) input.value = `${withLastWord(line, only)} `;
    else if (completions.length > 1) {
      const common = commonBeginning(completions);
      if (common.length > (/\S*$/.exec(line)?.[0] ?? "").length) input.value = withLastWord(line, common);
    }
    choices.replaceChildren(
      ...(completions.length > 1 ? completions : []).map((choice) =>
        h("button", { type: "button", class: "link", onclick: () => {
          input.value = `${withLastWord(input.value, choice)} `;
          choices.replaceChildren();
          input.focus();
        } }, choice),
      ),
    );
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Tab" && !event.shiftKey && input.value !== "") {
      event.preventDefault();
      void complete();
    } else if (event.key === "Enter") {
      const line = input.value.trim();
      input.value = "";
      choices.replaceChildren();
      if (line === "") return;
      if (lines.at(-1) !== line) lines.push(line);
      if (lines.length > LINES_MAX) lines.shift();
      place = lines.length;
      void carryOut(line);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      place = Math.max(0, Math.min(lines.length, place + (event.key === "ArrowUp" ? -1 : 1)));
      input.value = lines[place] ?? "";
    }
  });
  return {
    name: "console",
    title: "Console",
    element: h("section", { class: "terminal", "aria-label": "Console" }, h("h2", {}, "Console"), h("p", { class: "quiet" }, "help lists what there is; Tab completes; the arrows bring lines back."), output, choices, input),
    open: () => input.focus(),
  };
}
