import type { styled } from './terminal.js';

type Colour = Extract<Parameters<typeof styled>[0], 'green' | 'yellow' | 'red'>;

/** The headings of columns that hold a state. */
const HEADINGS = new Set(['STATUS', 'STATE', 'SEVERITY', 'COMPLETE']);

/** Green needs no person, yellow is under way or waits, red needs a person. Other states keep the terminal's own colour. */
const COLOURS: Readonly<Record<Colour, readonly string[]>> = {
  green: ['active', 'succeeded', 'on_time', 'proved', 'approved', 'resolved', 'delivered', 'ok'],
  yellow: ['queued', 'running', 'pending', 'paused', 'late', 'held', 'never', 'open', 'ongoing', 'not', 'warning', 'cancelled'],
  red: ['failed', 'reauthorization_required', 'action', 'problem'],
};

const BY_STATE = new Map(
  Object.entries(COLOURS).flatMap(([colour, states]) => states.map((state) => [state, colour as Colour] as const)),
);

export function isState(heading: string): boolean {
  return HEADINGS.has(heading);
}

/** The colour of a cell; undefined if it holds no state, or one that has no colour. Words after the first explain the state. */
export function stateColour(heading: string, text: string): Colour | undefined {
  return isState(heading) ? BY_STATE.get(/^\w+/.exec(text)?.[0] ?? '') : undefined;
}
