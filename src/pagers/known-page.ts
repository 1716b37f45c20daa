import type { Endpoint } from '../catalogue/endpoint.js';
import {
  around,
  type KeptAnswer,
  type KnownContent,
  type ReceivedPage,
  type ReceivedRecord,
  readPage,
  readRecord,
  withoutMark,
} from './envelope.js';
import { dataPath, readEnvelope } from './envelope-members.js';
import { changesOf, KeyHashes, RUN, TEXT_WORDS, TextHashes, textsOf } from './hashes.js';
import { digestArray, digestText } from './record-digests.js';
import { arrayStart, scanJson, skipSpace, type Span } from './json-scanner.js';

/** What an earlier walk received, all of which stands in the mirror as it was received then. */
export interface KnownPages {
  /** The page with this digest of its array of records. */
  withDigest(digest: Buffer): KnownContent | undefined;
  /** What this request (KeptAnswer) was answered with. */
  answerTo(request: string): KnownAnswer | undefined;
  /** Reads the hashes of all pages, which nobody needs as long as no page is another than before. */
  readHashes(): Promise<void>;
  /** A page that begins with this key. */
  beginningWith(key: KeyHashes): KnownContent | undefined;
  /** Whether any page held record `n` of these with the same text. */
  hasText(texts: TextHashes, n: number): boolean;
}

export interface KnownAnswer {
  readonly answer: KeptAnswer;
  readonly content: KnownContent;
  readonly digest: Buffer;
}

/**
 * The page of an answer that is still the answer, without having received it again. Here and below, what is new in an object stands
 * before what is spread into it: behind it, V8 takes a microsecond for each member.
 */
export function pageOf({ answer, content, digest }: KnownAnswer): ReceivedPage {
  const { total, nextToken } = answer;
  return {
    rejected: [],
    digest,
    answer,
    ...same(content),
    ...(total === undefined ? {} : { total }),
    ...(nextToken === undefined ? {} : { nextToken }),
  };
}

function same(content: KnownContent): Records & Pick<ReceivedPage, 'content'> {
  return { content, ids: content, keys: content.keys, texts: content.texts, records: [] };
}

/** Bytes of a response in which its array of records must begin for the page to be recognized. */
const HEAD_BYTES = 4_096;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/**
 * Reads a page against what an earlier walk received, so that its cost follows what changed. A page that is the same is known
 * by its digest, and only what stands around its records is parsed; of a page that holds the same records, only those whose text
 * is another are; of any other, all are, and those that are known are left out of `records`.
 */
export async function readAgainst(
  known: KnownPages,
  response: Buffer,
  endpoint: Endpoint,
  idField: string | undefined,
  ignoreTotals = false,
): Promise<ReceivedPage> {
  const full = () => readPage(response, endpoint, idField, ignoreTotals);
  const recognized = idField === undefined ? undefined : await recognize(known, response, endpoint, idField, ignoreTotals);
  if (recognized) return { response, full, ...recognized };
  await known.readHashes();
  const page = full();
  const records = page.records.filter(({ position }) => !known.hasText(page.texts, position));
  return { ...page, records, full: () => page };
}

/** Undefined, too, where anything about the response is unusual: reading all of it will tell what. */
async function recognize(
  known: KnownPages,
  response: Buffer,
  endpoint: Endpoint,
  idField: string,
  ignoreTotals: boolean,
): Promise<ReceivedPage | undefined> {
  const bytes = withoutMark(response);
  const start = arrayStart(bytes.subarray(0, HEAD_BYTES), dataPath(endpoint));
  // A guess; a wrong one has no known digest, and does not end where the last record does.
  const end = bytes.lastIndexOf(CLOSE_BRACKET) + 1;
  if (start === undefined || end <= start) return undefined;
  const digest = digestArray(bytes.subarray(start, end));
  const content = known.withDigest(digest);
  if (!content) await known.readHashes();
  try {
    const records = content ? same(content) : readChanged(known, bytes, { start, end }, endpoint, idField);
    if (!records) return undefined;
    const rest = around(bytes, { start, end });
    // Another array there, behind the first one, is the one that counts.
    if (scanJson(rest, dataPath(endpoint), [])?.array?.start !== start) return undefined;
    const { total, nextToken } = readEnvelope(JSON.parse(rest.toString()), endpoint, ignoreTotals, records.keys.length);
    return {
      rejected: [],
      digest,
      ...records,
      ...(total === undefined ? {} : { total }),
      ...(nextToken === undefined ? {} : { nextToken }),
    };
  } catch {
    return undefined;
  }
}

type Records = Pick<ReceivedPage, 'ids' | 'keys' | 'texts' | 'changes' | 'records'>;

/** The most changes that are kept in the place of a page's texts, as a share of these: more take longer to read and to write again. */
const CHANGED_AT_MOST = 1 / 4;

/** The records of the array, if they are those of a known page in its order; those with a new text are read. */
function readChanged(
  known: KnownPages,
  bytes: Buffer,
  { start, end }: Span,
  endpoint: Endpoint,
  idField: string,
): Records | undefined {
  const first = readRecord(bytes, skipSpace(bytes, start + 1), endpoint, idField);
  const before = first && known.beginningWith(KeyHashes.of([first.id]));
  if (!before) return undefined;
  const { length } = before.keys;
  const wordsBefore = before.texts.words;
  const words = wordsBefore.slice();
  /** Behind text `n` from `at` on, if it is what it was before. If not, a hash takes its place that means nothing. */
  const endOfSame = (at: number, n: number): number | undefined => {
    const wasEnd = at + wordsBefore[TEXT_WORDS * n + 2]!;
    if (wasEnd >= end) return undefined;
    digestText(bytes, at, wasEnd, words, n);
    const word = TEXT_WORDS * n;
    return words[word] === wordsBefore[word] && words[word + 1] === wordsBefore[word + 1] ? wasEnd : undefined;
  };
  const records: ReceivedRecord[] = [];
  const changed: number[] = [];
  let at = start;
  for (let n = 0, runStart = start; n < length; ) {
    if (bytes[at] !== (n === 0 ? OPEN_BRACKET : COMMA)) return undefined;
    at = skipSpace(bytes, at + 1);
    const run = length + Math.floor(n / RUN);
    if (n % RUN === 0) {
      runStart = at;
      const runEnd = endOfSame(at, run);
      if (runEnd !== undefined) {
        at = skipSpace(bytes, runEnd);
        n = Math.min(n + RUN, length);
        continue;
      }
      changed.push(run);
    }
    let recordEnd = endOfSame(at, n);
    if (recordEnd === undefined) {
      const read = readRecord(bytes, at, endpoint, idField);
      if (!read || !before.keys.isKey(n, read.id)) return undefined;
      recordEnd = read.end;
      digestText(bytes, at, recordEnd, words, n);
      changed.push(n);
      records.push(copyOf(bytes.subarray(at, recordEnd), read.id, n));
    }
    n += 1;
    if (n % RUN === 0 || n === length) digestText(bytes, runStart, recordEnd, words, run);
    at = skipSpace(bytes, recordEnd);
  }
  if (at !== end - 1) return undefined;
  const texts = new TextHashes(length, words);
  const areFew = before.texts.changeCount + changed.length <= CHANGED_AT_MOST * textsOf(length);
  return { ids: before, keys: before.keys, texts, records, ...(areFew && { changes: changesOf(texts, changed) }) };
}

/** Apart from the response, which is large and need not wait for what little of it is written. */
function copyOf(text: Buffer, id: string, position: number): ReceivedRecord {
  return { id, source: Buffer.from(text), start: 0, end: text.length, position };
}
