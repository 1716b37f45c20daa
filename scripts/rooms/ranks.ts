/**
 * The rooms of src/ from the bottom up. A room may import itself and the rooms of lower ranks, never one of its own rank or
 * above: that is what keeps every part replaceable and makes a cycle between rooms impossible.
 * `app` is the file src/app.ts.
 */
const RANKS: readonly (readonly string[])[] = [
  ['core', 'generated'],
  ['db', 'catalogue'],
  ['observability'],
  ['embedded'],
  ['pagers', 'http', 'mirror'],
  ['notifications'],
  ['walks', 'oauth'],
  ['runs'],
  ['api', 'jobs', 'sandbox'],
  ['config'],
  ['app'],
  ['cli'],
];

/** Rooms that import less than their rank allows, and why. */
export const IMPORTS_ONLY: Readonly<Record<string, { rooms: readonly string[]; because: string }>> = {
  sandbox: { rooms: ['core'], because: 'were it to share a name with the client side, one typo would satisfy both sides' },
};

/** Rooms that fewer may import than the ranks allow, and why. */
export const IMPORTED_ONLY_BY: Readonly<Record<string, { rooms: readonly string[]; because: string }>> = {
  config: { rooms: ['app', 'cli'], because: 'parts are handed their settings, so that each can be built without an environment' },
  generated: {
    rooms: ['db', 'mirror', 'oauth', 'walks', 'runs', 'api', 'jobs'],
    because: 'the rooms that have no business with the database cannot depend on its shape',
  },
};

export function rankOf(room: string): number | undefined {
  const rank = RANKS.findIndex((rooms) => rooms.includes(room));
  return rank === -1 ? undefined : rank;
}
