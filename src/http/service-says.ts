import { redactText } from '../observability/redaction.js';

/** Longest sentence that is kept, in UTF-16 code units. */
const LONGEST = 300;
/** Longest body that is looked into, in bytes: a longer one is no sentence. */
const LONGEST_BODY = 65_536;
/** Longest text without structure that is taken for a sentence, in bytes. */
const LONGEST_PLAIN = 2_000;
/** Levels of nested objects and arrays that are looked into. */
const DEEPEST = 5;

/** Members that hold a sentence or lead to one, in lower case and without `_` and `-`; the first that is filled counts. */
const MEMBERS = [
  'message',
  'errordescription',
  'detail',
  'errormessage',
  'usermessage',
  'developermessage',
  'description',
  'msg',
  'faultstring',
  'exceptionmessage',
  'reason',
  'title',
  'error',
  'errors',
  'fault',
  'exception',
  'details',
  'response',
  'value',
];

/** Bidirectional controls, zero-width characters and other invisible format characters. */
const INVISIBLE = /\p{Cf}/gu;
/** Control characters, line and paragraph separators, private and unassigned code points, and white space. */
const SEPARATING = /[\p{Cc}\p{Zl}\p{Zp}\p{Co}\p{Cn}\s]+/gu;

/**
 * The service's own sentence in the body of an error: from the first JSON member that is known to hold one, or a short plain text.
 * At most 300 characters on one line, without control characters and without tokens. Undefined where the body is HTML, is
 * empty, or has no such sentence. It is text from outside: escape it where it is shown.
 */
export function serviceSays({
  headers,
  bytes,
}: {
  headers: Readonly<Record<string, string>>;
  bytes: Uint8Array;
}): string | undefined {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const isJson = /^(application|text)\/([\w.-]+\+)?json$/.test(type);
  const isPlain = type === '' || type === 'text/plain';
  if (bytes.length === 0 || bytes.length > LONGEST_BODY || !(isJson || isPlain)) return undefined;
  const text = new TextDecoder().decode(bytes);
  let found: string | undefined;
  try {
    found = sentenceIn(JSON.parse(text), DEEPEST);
  } catch {
    if (isPlain && bytes.length <= LONGEST_PLAIN && !text.trimStart().startsWith('<')) found = text;
  }
  return found && (cleanSentence(found) || undefined);
}

function sentenceIn(value: unknown, levels: number): string | undefined {
  if (typeof value === 'string') return value.trim() ? value : undefined;
  if (typeof value !== 'object' || value === null || levels === 0) return undefined;
  if (Array.isArray(value)) return sentenceIn(value[0], levels - 1);
  const members = new Map(Object.entries(value).map(([name, member]) => [name.toLowerCase().replaceAll(/[_-]/g, ''), member]));
  for (const name of MEMBERS) {
    const found = sentenceIn(members.get(name), levels - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Redaction must come after the cleaning, which joins what invisible characters divide, and before the cut, which could leave half a token. */
function cleanSentence(text: string): string {
  const line = redactText(text.toWellFormed().replace(INVISIBLE, '').replace(SEPARATING, ' ').trim());
  return line.length <= LONGEST
    ? line
    : `${line
        .slice(0, LONGEST - 1)
        .toWellFormed()
        .replace(/\uFFFD$/, '')
        .trimEnd()}…`;
}
