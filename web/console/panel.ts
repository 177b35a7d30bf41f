// A panel: one of the console's views, which is told when it is looked at and when something new has come.

import type { Finding } from "./findings.ts";
import type { Model, Part } from "./model.ts";

export interface Panel {
  /** As in the address: `#/worlds`. */
  name: string;
  title: string;
  element: HTMLElement;
  /** It is looked at from now on; `rest` is what the address says beyond its name. */
  open?: (rest: string) => void;
  /** It is not any more. */
  close?: () => void;
  /** Something new has come, while it is looked at. */
  update?: (part: Part) => void;
}

/** What panels are given. */
export interface Surroundings {
  model: Model;
  /** What is wrong now, made once a second. */
  found: () => Finding[];
  /** Leads to a panel: `world/7`. */
  go: (where: string) => void;
  /** Something that needs a key is to be done: asks for one if there is none. False: nobody gave one. */
  signIn: () => Promise<boolean>;
}
