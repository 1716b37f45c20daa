/** Passing values that are kept. An older value is still caught by its key or pattern. */
const PASSING_LIMIT = 10_000;
/** Values are indexed by their first characters, so that the cost depends on the length of the text and not on the number of secrets. */
const PREFIX = 6;
/** Shorter values would remove ordinary words from the log. */
const SHORTEST = 8;
const REDACTED = '[redacted]';

const lasting = new Set<string>();
/** In the order of their last registration, the oldest first. */
const passing = new Set<string>();
const byPrefix = new Map<string, Set<string>>();

/**
 * Registers a value that must never appear in a log line; call it wherever a secret becomes known. Settings are `lasting`
 * (the client secret, the admin token). Of tokens, which come and go, only the newest 10,000 are kept.
 */
export function registerSecret(value: string, options: { lasting?: boolean } = {}): void {
  const forms = [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)];
  for (const form of new Set(forms)) register(form, options.lasting ?? false);
}

/** A pattern is needed because Node does not accept an address with several hosts as a URL. */
const PASSWORD_AND_QUERY = /^[^:]+:\/\/(?:[^:/?#]*:([^/?#]*)@)?[^?]*\??(.*)$/;

/** Registers the password in the address of a database or queue, as written and as sent. */
export function registerPasswordOf(url: string): void {
  const [, password = '', query = ''] = PASSWORD_AND_QUERY.exec(url) ?? [];
  // Drivers also read the password from a parameter, which is decoded already.
  for (const written of [password, new URLSearchParams(query).get('password') ?? '']) {
    registerSecret(written, { lasting: true });
    registerSecret(decoded(written), { lasting: true });
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replace(/%(?![\da-f]{2})/gi, '%25')); // drivers take a lone per cent sign for itself
  } catch {
    return text;
  }
}

/** The text with every registered value replaced. */
export function scrubRegistered(text: string): string {
  if (byPrefix.size === 0) return text;
  let clean = '';
  let from = 0;
  for (let at = 0; at + PREFIX <= text.length; at++) {
    const found = longestAt(text, at);
    if (found === undefined) continue;
    clean += text.slice(from, at) + REDACTED;
    from = at + found.length;
    at = from - 1;
  }
  return from === 0 ? text : clean + text.slice(from);
}

function register(value: string, isLasting: boolean): void {
  if (value.length < SHORTEST) return;
  if (isLasting) {
    passing.delete(value);
    lasting.add(value);
  } else if (!lasting.has(value)) {
    passing.delete(value);
    passing.add(value);
  }
  const prefix = value.slice(0, PREFIX);
  const sharing = byPrefix.get(prefix);
  if (sharing) sharing.add(value);
  else byPrefix.set(prefix, new Set([value]));
  if (passing.size > PASSING_LIMIT) forgetOldest();
}

function forgetOldest(): void {
  const [oldest] = passing;
  if (oldest === undefined) return;
  passing.delete(oldest);
  const prefix = oldest.slice(0, PREFIX);
  const sharing = byPrefix.get(prefix);
  sharing?.delete(oldest);
  if (sharing?.size === 0) byPrefix.delete(prefix);
}

/** All JWTs begin alike, so many values share a prefix. The longest match wins, because otherwise its tail would stay readable. */
function longestAt(text: string, at: number): string | undefined {
  let longest: string | undefined;
  for (const value of byPrefix.get(text.slice(at, at + PREFIX)) ?? []) {
    if (value.length > (longest?.length ?? 0) && text.startsWith(value, at)) longest = value;
  }
  return longest;
}
