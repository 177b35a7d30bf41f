// The key: asked for when something is to be changed, or where reading needs one. Kept for this tab.

import { h } from "../elements/dom.ts";
import { key, showKey } from "./port.ts";

const HELP =
  "Changes need a key of the role operate. A server on loopback leaves one for its own user: its log says in which file, such as /run/user/1000/throng/admin-127.0.0.1:9100.key. Elsewhere it is the key of your line in [server] admin_keys_file.";

/** Asks for a key, with words about why. False: none was given. */
export function askForKey(why: string): Promise<boolean> {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", name: "key", autocomplete: "off", spellcheck: "false", "aria-label": "Key", placeholder: "64 hexadecimal digits" });
    const problem = h("p", { class: "bad", role: "alert" }, "");
    const dialog: HTMLDialogElement = h("dialog", { class: "key", "aria-label": "Key" });
    let isGiven = false;
    const submit = () => {
      if (input.value.trim() === "" || !showKey(input.value)) {
        problem.textContent = "this is no key: it has 64 hexadecimal digits; a whole line of the file of keys will do";
        return;
      }
      isGiven = true;
      dialog.close();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      // Else the same press would go on to the button that has the focus when this is closed, and act twice.
      event.preventDefault();
      submit();
    });
    dialog.append(
      h("h2", {}, "Show a key"),
      h("p", {}, why),
      h("p", { class: "quiet" }, HELP),
      input,
      problem,
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: submit }, "Show it"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isGiven);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}

export const hasKey = (): boolean => key() !== undefined;
