// Elements in one call, without a framework: `h("p", { class: "note" }, "text", h("b", {}, "more"))`.
//
// Text is always set as text, never as markup: names in captures may come from strangers.

type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => unknown)>;
export type Child = Node | string | undefined | false | null;

export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(attribute.replace(/^on/, ""), value as EventListener);
    else element.setAttribute(attribute, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child): child is Node | string => child !== undefined && child !== false && child !== null));
  return element;
}

export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** Puts a text where others can paste it; works from `file:` too. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Calls `action` once things have been quiet for `ms`. */
export function whenQuiet(ms: number, action: () => void): () => void {
  let timer: number | undefined;
  return () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(action, ms);
  };
}
