/** The texts with which a service refused a request. They may be personal, so they are kept apart from the error, out of reach of logs and tables. */
const TEXTS = new WeakMap<Error, readonly string[]>();

export function keepRefusalTexts(error: Error, texts: readonly string[]): void {
  TEXTS.set(error, texts);
}

/** Returns all texts of the body, including codes and nested texts; undefined if the body was too large or the error is not a refusal. */
export function refusalTexts(error: Error): readonly string[] | undefined {
  return TEXTS.get(error);
}
