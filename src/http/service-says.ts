import { redactText } from '../observability/redaction.js';

/** Longest sentence, in UTF-16 code units. */
const LONGEST = 300;
/** Longest body that is searched, in bytes. */
const LONGEST_BODY = 65_536;
/** Longest plain text that counts as a sentence, in bytes. */
const LONGEST_PLAIN = 2_000;
/** Levels of nested objects and arrays that are searched. */
const DEEPEST = 5;

/** Members that hold a sentence or lead to one, in lower case and without `_` and `-`. The first filled one counts. */
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
 * Finds the service's own sentence in the body of an error: the first known JSON member that holds one, or a short plain text.
 * At most 300 characters on one line, without control characters and tokens. Undefined if the body is HTML, is empty, or has
 * no such sentence. The text is external: escape it before you show it.
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

/** Limits for the number of texts and for the characters of each. */
const MOST_TEXTS = 100;
const MOST_OF_A_TEXT = 500;
/** Members that repeat the request or name it. */
const OF_THE_REQUEST =
  /^(path|instance|timestamp|time|date|(.*[a-z_-])?(id|Id|ID)|url|uri|href|method|documentation_url|stack|trace)$/;

/**
 * Returns all texts in the JSON body of an error, including codes and nested texts, for the pagers. They are not redacted: never log or store them.
 * Empty without a body; undefined if the body is too large, is not JSON, or has too many texts.
 */
export function refusalTextsOf({ bytes }: { readonly bytes: Uint8Array }): readonly string[] | undefined {
  if (bytes.length > LONGEST_BODY) return undefined;
  const texts: string[] = [];
  const visit = (value: unknown, levels: number): void => {
    if (typeof value === 'string' && value.trim()) texts.push(value.slice(0, MOST_OF_A_TEXT));
    if (typeof value !== 'object' || value === null) return;
    if (levels === 0 || texts.length > MOST_TEXTS) throw new RangeError('more than is looked into');
    for (const [name, member] of Object.entries(value)) if (!OF_THE_REQUEST.test(name)) visit(member, levels - 1);
  };
  try {
    if (bytes.length > 0) visit(JSON.parse(new TextDecoder().decode(bytes)), 2 * DEEPEST);
    return texts;
  } catch {
    return undefined;
  }
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

/** Redaction must follow the cleaning, which joins tokens that invisible characters split, and precede the cut, which could leave half a token. */
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
