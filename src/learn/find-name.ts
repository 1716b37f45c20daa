/** The result of an attempt with some names: an effect, none, or a refusal. */
export type Reaction<T> =
  | { readonly kind: 'effect'; readonly effect: T }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused' };

/** The most names tried one by one if the service refuses many at once. */
const MOST_SINGLE = 8;

/**
 * Finds the name that has an effect, in few requests: it tries the likeliest names first, then all others at once, then by bisection. If
 * the service refuses many at once, it tries them one by one. `mayAsk`: whether a request is left.
 */
export async function findName<T>(
  names: readonly string[],
  tryWith: TryWith<T>,
  { mayAsk, likely = 1 }: { readonly mayAsk: () => boolean; readonly likely?: number },
): Promise<FoundName<T>> {
  const found = await tryEach(names.slice(0, likely), tryWith, mayAsk);
  const others = names.slice(likely);
  if (found || others.length === 0 || !mayAsk()) return found;
  const all = await tryWith(others);
  if (all.kind === 'none') return undefined;
  const narrowed = all.kind === 'effect' ? await narrowDown(others, all.effect, tryWith, mayAsk) : undefined;
  return narrowed ?? tryEach(others.slice(0, MOST_SINGLE), tryWith, mayAsk);
}

type TryWith<T> = (names: readonly string[]) => Promise<Reaction<T>>;
type FoundName<T> = { readonly name: string; readonly effect: T } | undefined;

async function tryEach<T>(names: readonly string[], tryWith: TryWith<T>, mayAsk: () => boolean): Promise<FoundName<T>> {
  for (const name of names) {
    if (!mayAsk()) return undefined;
    const reaction = await tryWith([name]);
    if (reaction.kind === 'effect') return { name, effect: reaction.effect };
  }
  return undefined;
}

async function narrowDown<T>(
  names: readonly string[],
  effect: T,
  tryWith: TryWith<T>,
  mayAsk: () => boolean,
): Promise<FoundName<T>> {
  if (names.length === 1) return { name: names[0]!, effect };
  if (!mayAsk()) return undefined;
  // The likeliest names come first, so the first part is the smaller one.
  const middle = Math.max(1, Math.floor(names.length / 3));
  const first = await tryWith(names.slice(0, middle));
  if (first.kind === 'effect') return narrowDown(names.slice(0, middle), first.effect, tryWith, mayAsk);
  const second = names.slice(middle);
  return second.length === 1 ? tryEach(second, tryWith, mayAsk) : narrowDown(second, effect, tryWith, mayAsk);
}
