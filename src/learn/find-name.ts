/** The result of an attempt with some names: an effect, none, or a refusal. */
export type Reaction<T> =
  | { readonly kind: 'effect'; readonly effect: T }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused' };

/** Names that are tried one by one where a service refuses to be asked with many at once. */
const MOST_SINGLE = 8;

/**
 * Finds the name that has an effect, in few requests: the likeliest first, then all others at once, and, where they have an effect, half of them,
 * and so on. A service that refuses many at once is asked with one after the other. `mayAsk`: whether a request is left for it.
 */
export async function findName<T>(
  names: readonly string[],
  tryWith: (names: readonly string[]) => Promise<Reaction<T>>,
  { mayAsk, likely = 1 }: { readonly mayAsk: () => boolean; readonly likely?: number },
): Promise<{ readonly name: string; readonly effect: T } | undefined> {
  for (const name of names.slice(0, likely)) {
    if (!mayAsk()) return undefined;
    const reaction = await tryWith([name]);
    if (reaction.kind === 'effect') return { name, effect: reaction.effect };
  }
  const others = names.slice(likely);
  if (others.length === 0 || !mayAsk()) return undefined;
  const all = await tryWith(others);
  if (all.kind === 'effect') {
    const found = await narrowDown(others, all.effect, tryWith, mayAsk);
    if (found) return found;
  }
  if (all.kind === 'none') return undefined;
  for (const name of others.slice(0, MOST_SINGLE)) {
    if (!mayAsk()) return undefined;
    const reaction = await tryWith([name]);
    if (reaction.kind === 'effect') return { name, effect: reaction.effect };
  }
  return undefined;
}

async function narrowDown<T>(
  names: readonly string[],
  effect: T,
  tryWith: (names: readonly string[]) => Promise<Reaction<T>>,
  mayAsk: () => boolean,
): Promise<{ readonly name: string; readonly effect: T } | undefined> {
  if (names.length === 1) return { name: names[0]!, effect };
  if (!mayAsk()) return undefined;
  // The likeliest stand first, so the first part is the smaller one.
  const middle = Math.max(1, Math.floor(names.length / 3));
  const first = await tryWith(names.slice(0, middle));
  if (first.kind === 'effect') return narrowDown(names.slice(0, middle), first.effect, tryWith, mayAsk);
  const second = names.slice(middle);
  if (second.length === 1 || !mayAsk()) {
    if (!mayAsk()) return undefined;
    const last = await tryWith(second);
    return last.kind === 'effect' ? { name: second[0]!, effect: last.effect } : undefined;
  }
  return narrowDown(second, effect, tryWith, mayAsk);
}
