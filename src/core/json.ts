/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/** Neither null nor an array counts as an object. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined if the text is no JSON, which has no undefined of its own. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object that a JSON text holds; undefined if it holds none. */
export function parseObject(text: string): Members | undefined {
  const value = parseJson(text);
  return isObject(value) ? value : undefined;
}

/** Leaves out members that are undefined. */
export function present<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
