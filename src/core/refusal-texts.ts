/** Texts of the answer with which a service refused a request. They may speak of people: they are kept beside the error, where no log and no table finds them. */
const TEXTS = new WeakMap<Error, readonly string[]>();

export function keepRefusalTexts(error: Error, texts: readonly string[]): void {
  TEXTS.set(error, texts);
}

/** All texts of the body, codes and nested ones included; undefined where the body is too large to tell, or the error is none of such an answer. */
export function refusalTexts(error: Error): readonly string[] | undefined {
  return TEXTS.get(error);
}
