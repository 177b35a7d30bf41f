// Settings: what can be changed while the server runs, each by the console's own commands, and who changed what.

import { h } from "../elements/dom.ts";
import { LiveTable } from "../elements/live_table.ts";
import { moment } from "./figures.ts";
import type { Panel, Surroundings } from "./panel.ts";
import { command, commandObject } from "./port.ts";

interface Tunable {
  name: string;
  value: number;
  default: number;
  low: number;
  high: number;
  unit: string;
  help: string;
}

interface Budget {
  what: "subsystem" | "tick" | "scope";
  name: string;
  kind: string;
  us: number;
}

interface Trigger {
  trigger: string;
  is_on: boolean;
  threshold: number | null;
  unit: string;
  fits_rate: boolean;
  cooldown_s: number;
}

interface Rule {
  key: string;
  /** Null: nothing is held back, or it is as each world has it. */
  value: string | null;
  from: "default" | "file" | "console";
  changed_by: string;
  note: string | null;
}

interface Change {
  at_unix_s: number;
  who: string;
  from: string;
  what: string;
  outcome: string;
}

/** A row whose field holds what is in force, until somebody types. */
function field(label: string, value: string, inputmode: "decimal" | "text"): HTMLInputElement {
  return h("input", { type: "text", inputmode, class: "value", "aria-label": label, value, autocomplete: "off" });
}

export function settings({ model, signIn }: Surroundings): Panel {
  const said = h("p", { class: "said", role: "status" }, "");
  const tunables = h("tbody");
  const budgets = h("tbody");
  const triggers = h("tbody");
  const rules = h("tbody");
  const names = h("datalist", { id: "budget-names" });
  const kinds = h("datalist", { id: "budget-kinds" });
  const keys = h("datalist", { id: "rule-keys" });
  let changesKnown = -1;
  let isOpen = false;

  const changes = new LiveTable<Change & { place: number }>({
    caption: "Who changed what, the newest first",
    key: ({ place }) => String(place),
    empty: "Nothing has been changed since the start.",
    headings: [
      { name: "when", cell: ({ at_unix_s }) => `${moment(at_unix_s)} UTC` },
      { name: "who", cell: ({ who }) => who },
      { name: "what", cell: ({ what }) => what.replace(/^console /, "") },
      { name: "from", cell: ({ from }) => from },
      { name: "outcome", cell: ({ outcome }) => outcome, className: ({ outcome }) => (outcome.startsWith("200") ? "" : "bad") },
    ],
  });

  const tell = (text: string, isBad: boolean) => {
    said.textContent = text;
    said.className = isBad ? "said bad" : "said good";
  };
  const words = (error: unknown) => (error instanceof Error ? error.message : String(error));
  const change = async (line: string, text: string): Promise<void> => {
    if (!(await signIn())) return tell("not changed: that needs a key", true);
    try {
      await command(line);
      tell(text, false);
    } catch (error) {
      tell(words(error), true);
    }
    await load();
  };
  const setter = (label: string, value: string, act: (value: string) => void, inputmode: "decimal" | "text" = "decimal") => {
    const input = field(label, value, inputmode);
    const button = h("button", { type: "button", onclick: () => act(input.value.trim()) }, "Set");
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      input.blur();
      act(input.value.trim());
    });
    return h("span", { class: "set" }, input, button);
  };
  /** Shows rows, but not over what somebody types among them: they are asked for again once nobody does. */
  const put = (body: HTMLElement, ...rows: Node[]) => {
    if (document.activeElement instanceof HTMLInputElement && body.contains(document.activeElement)) changesKnown = -1;
    else body.replaceChildren(...rows);
  };
  /** A number as a person types it; undefined: it is none, which is told. */
  const numberIn = (text: string): string | undefined => {
    if (text !== "" && Number.isFinite(Number(text))) return text;
    tell(`${text === "" ? "nothing" : `“${text}”`} is not a number`, true);
    return undefined;
  };

  const showTunables = (rows: Tunable[]) =>
    put(
      tunables,
      ...(rows.length > 0 ? [] : [h("tr", {}, h("td", { colspan: "3", class: "quiet" }, "This game has nothing that can be tuned."))]),
      ...rows.map((row) =>
        h(
          "tr",
          { "data-name": row.name },
          h("td", {}, h("strong", {}, row.name), h("div", { class: "quiet" }, row.help)),
          h("td", {}, setter(row.name, String(row.value), (text) => {
            const value = numberIn(text);
            if (value !== undefined) void change(`tune.set ${row.name} ${value}`, `${row.name} is ${value} ${row.unit}`);
          })),
          h("td", { class: "quiet" }, `${row.low} to ${row.high} ${row.unit}; default ${row.default}`),
        ),
      ),
    );
  const showBudgets = (rows: Budget[]) =>
    put(
      budgets,
      ...rows.map((row) => {
        const of = `${row.what} ${row.name}`;
        return h(
          "tr",
          { "data-name": `${row.what} ${row.name} ${row.kind}`.trim() },
          h("td", {}, row.name),
          h("td", {}, row.what === "subsystem" ? "a frame" : row.what === "tick" ? "a tick" : "one scope"),
          h("td", {}, row.kind || "all"),
          h("td", {}, setter(`budget of ${of}`, String(row.us), (text) => {
            const us = numberIn(text);
            if (us !== undefined) void change(`budget.set ${of} ${us} ${row.kind}`, `${row.name} may take ${us} µs`);
          })),
          h("td", {}, h("button", { type: "button", onclick: () => void change(`budget.clear ${of} ${row.kind}`, `${row.name} has no such budget any more`) }, "Clear")),
        );
      }),
    );
  const showTriggers = (rows: Trigger[]) =>
    put(
      triggers,
      ...rows.map((row) => {
        const state = row.is_on ? "on" : "off";
        const threshold =
          row.threshold === null
            ? "by budgets or by hand"
            : setter(`threshold of ${row.trigger}`, String(row.threshold), (text) => {
                const value = numberIn(text);
                if (value !== undefined) void change(`trigger.set ${row.trigger} ${state} ${value}`, `${row.trigger} fires above ${value} ${row.unit}`);
              });
        const toggled = row.is_on ? "off" : "on";
        return h(
          "tr",
          { "data-name": row.trigger },
          h("td", {}, row.trigger),
          h("td", {}, h("button", { type: "button", "aria-pressed": String(row.is_on), onclick: () => void change(`trigger.set ${row.trigger} ${toggled}`, `${row.trigger} is ${toggled}`) }, state)),
          h("td", {}, threshold),
          h("td", { class: "quiet" }, row.threshold === null ? "" : `${row.unit}${row.fits_rate ? "; less at rates above 30 Hz" : ""}`),
        );
      }),
    );

  // What a rule may be, the server knows.
  const setRule = (key: string, value: string) => void change(`rules.set ${key} ${value}`, `${key} is ${value}`);
  const showRules = (rows: Rule[]) => {
    keys.replaceChildren(...rows.filter((row) => row.changed_by === "rules.set").map((row) => h("option", { value: row.key })));
    put(
      rules,
      ...rows.map((row) => {
        const isSettable = row.changed_by === "rules.set";
        return h(
          "tr",
          { "data-name": row.key },
          h("td", {}, row.key),
          h("td", {}, isSettable ? setter(row.key, row.value ?? "", (text) => setRule(row.key, text), "text") : (row.value ?? "")),
          h("td", { class: row.from === "default" ? "quiet" : "" }, row.from),
          h("td", { class: "quiet" }, row.note ?? (isSettable ? "" : row.changed_by === "file" ? "changed in the file" : `changed by ${row.changed_by}`)),
        );
      }),
    );
  };
  const showNoRules = (why: string) => put(rules, h("tr", {}, h("td", { colspan: "4", class: "quiet" }, why)));

  const load = async () => {
    const asked = async <T>(line: string, show: (rows: T[]) => void, tellWhy = (why: string) => tell(why, true)) => {
      try {
        show((await commandObject<{ rows: T[] }>(line)).rows);
      } catch (error) {
        tellWhy(words(error));
      }
    };
    const changed = commandObject<{ changes: Change[] }>("changes").then(
      ({ changes: rows }) => changes.set(rows.map((row, at) => ({ ...row, place: rows.length - at }))),
      (error: unknown) => tell(words(error), true),
    );
    await Promise.all([asked("tune.list", showTunables), asked("budget.list", showBudgets), asked("trigger.list", showTriggers), asked("rules.list", showRules, showNoRules), changed]);
  };

  const what = h("select", { "aria-label": "What the budget is of" }, h("option", { value: "subsystem" }, "subsystem in a frame"), h("option", { value: "tick" }, "subsystem in a tick"), h("option", { value: "scope" }, "scope"));
  const name = h("input", { type: "text", list: "budget-names", placeholder: "name", "aria-label": "Name", autocomplete: "off" });
  const us = h("input", { type: "text", inputmode: "decimal", placeholder: "µs", class: "value", "aria-label": "Microseconds" });
  const kind = h("input", { type: "text", list: "budget-kinds", placeholder: "kind of world, or all", "aria-label": "Kind of world", autocomplete: "off" });
  const add = h("button", { type: "button", id: "budget-add", onclick: () => {
    const value = numberIn(us.value.trim());
    if (value === undefined) return;
    void change(`budget.set ${what.value} ${name.value.trim()} ${value} ${kind.value.trim()}`, `${name.value.trim()} may take ${value} µs`);
  } }, "Give a budget");

  const key = h("input", { type: "text", list: "rule-keys", placeholder: "key, such as log.server.clients", "aria-label": "Key of the rule", autocomplete: "off" });
  const value = h("input", { type: "text", class: "value", placeholder: "value", "aria-label": "Value of the rule", autocomplete: "off" });
  const set = h("button", { type: "button", onclick: () => setRule(key.value.trim(), value.value.trim()) }, "Set a rule");

  const action = (label: string, line: string, done: string) => h("button", { type: "button", onclick: () => void change(line, done) }, label);
  const table = (caption: string, headings: string[], body: HTMLElement) =>
    h("div", { class: "table" }, h("table", {}, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, h("tr", {}, headings.map((heading) => h("th", { scope: "col" }, heading)))), body));

  return {
    name: "settings",
    title: "Settings",
    element: h(
      "div",
      { class: "settings" },
      h("div", { class: "head" }, h("h2", {}, "Settings"), action("Read [game] again", "settings.reload", "the settings were read again"), action("Read the rules again", "rules.reload", "the rules were read again")),
      said,
      h("section", { "aria-label": "Tunables" }, h("h2", {}, "Tunables"), h("p", { class: "quiet" }, "They hold in each world with its next tick."), table("Tunables", ["name", "value", "range"], tunables)),
      h("section", { "aria-label": "Budgets" }, h("h2", {}, "Budgets"), h("p", { class: "quiet" }, "What takes more has a capture saved. A change holds until the rules file changes or is read again."), h("div", { class: "give" }, what, name, us, kind, add, names, kinds), table("Budgets", ["name", "in", "worlds", "µs", ""], budgets)),
      h("section", { "aria-label": "Triggers" }, h("h2", {}, "Triggers"), table("Triggers", ["trigger", "state", "too much", "unit"], triggers)),
      h("section", { "aria-label": "Rules" }, h("h2", {}, "Rules"), h("p", { class: "quiet" }, "All that is in force. A change holds until the rules file changes or is read again."), h("div", { class: "give" }, key, value, set, keys), table("Rules", ["key", "value", "from", ""], rules)),
      h("section", { "aria-label": "Changes" }, h("h2", {}, "Who changed what"), changes.element),
    ),
    open: () => {
      isOpen = true;
      changesKnown = model.health?.changes ?? -1;
      names.replaceChildren(...(model.second?.subsystems ?? []).map((of) => h("option", { value: of.name })));
      kinds.replaceChildren(...(model.second?.kinds ?? []).map((of) => h("option", { value: of.kind })));
      void load();
    },
    close: () => {
      isOpen = false;
    },
    update: (part) => {
      const count = model.health?.changes ?? -1;
      // Somebody else's change shows, too; whoever is typing is not disturbed.
      if (part !== "health" || !isOpen || count === changesKnown) return;
      if (document.activeElement instanceof HTMLInputElement) return;
      changesKnown = count;
      void load();
    },
  };
}
