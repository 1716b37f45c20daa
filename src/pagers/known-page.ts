import { isUtf8 } from 'node:buffer';
import type { Endpoint } from '../catalogue/endpoint.js';
import { ChangedRecords } from './changed-records.js';
import {
  around,
  type KeptAnswer,
  type KnownContent,
  type ReadAt,
  type ReceivedPage,
  readPage,
  recordReader,
  withoutMark,
} from './envelope.js';
import { dataPath, readEnvelope } from './envelope-members.js';
import { KeyHashes, RUN, type TextHashes } from './hashes.js';
import { arrayStart, type Span, scanJson, skipSpace } from './json-scanner.js';
import { endOfText } from './record-digests.js';

/** What an earlier walk received, all of which stands in the mirror as it was received then. */
export interface KnownPages {
  /** What this request (KeptAnswer) was answered with. */
  answerTo(request: string): KnownAnswer | undefined;
  /** Reads the hashes of all pages, which nobody needs as long as no page is another than before. */
  readHashes(): Promise<void>;
  /** A page that begins with this key, or has none. Of its texts the runs are there. */
  beginningWith(key: KeyHashes): KnownContent | undefined;
  /** Whether any page held record `n` of these with the same text. */
  hasText(texts: TextHashes, n: number): boolean;
}

export interface KnownAnswer {
  readonly answer: KeptAnswer;
  readonly content: KnownContent;
}

/**
 * The page of an answer that is still the answer, without having received it again. Here and below, what is new in an object stands
 * before what is spread into it: behind it, V8 takes a microsecond for each member.
 */
export function pageOf({ answer, content }: KnownAnswer): ReceivedPage {
  return { rejected: [], answer, total: answer.total, nextToken: answer.nextToken, ...same(content) };
}

function same(content: KnownContent): Records {
  return { content, ids: content, keys: content.keys, texts: content.texts, records: [] };
}

/** Bytes of a response in which its array of records must begin for the page to be recognized. */
const HEAD_BYTES = 4_096;
const COMMA = 0x2c;
const CLOSE_BRACKET = 0x5d;

/**
 * Reads a page against what an earlier walk received, so that its cost follows what changed. Of a page that holds the same records,
 * only those whose text is another are parsed, and what stands around them; of any other, all are, and those that are known are left
 * out of `records`.
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
  // A guess; a wrong one is not where the last record ends.
  const end = bytes.lastIndexOf(CLOSE_BRACKET) + 1;
  if (start === undefined || end <= start) return undefined;
  try {
    const records = await readRecords(known, bytes, { start, end }, recordReader(bytes, endpoint, idField));
    if (!records) return undefined;
    const rest = around(bytes, { start, end });
    if (!isUtf8(rest)) return undefined;
    // Another array there, behind the first one, is the one that counts.
    if (scanJson(rest, dataPath(endpoint), [])?.array?.start !== start) return undefined;
    const { total, nextToken } = readEnvelope(JSON.parse(rest.toString()), endpoint, ignoreTotals, records.keys.length);
    return { rejected: [], total, nextToken, ...records };
  } catch {
    return undefined;
  }
}

type Records = Pick<ReceivedPage, 'content' | 'ids' | 'keys' | 'texts' | 'changes' | 'records'>;

/** The records of the array, if they are those of a known page in its order. */
async function readRecords(known: KnownPages, bytes: Buffer, array: Span, readAt: ReadAt): Promise<Records | undefined> {
  let at = skipSpace(bytes, array.start + 1);
  const first = readAt(at);
  const before = known.beginningWith(KeyHashes.of(first ? [first.id] : []));
  if (!before) return undefined;
  let changes: ChangedRecords | undefined;
  for (let n = 0; n < before.keys.length; n += RUN) {
    if (n > 0) {
      if (bytes[at] !== COMMA) return undefined;
      at = skipSpace(bytes, at + 1);
    }
    let end = endOfText(bytes, at, array.end, before.texts.runs, n / RUN);
    if (end === undefined) {
      await known.readHashes();
      changes ??= new ChangedRecords(before, bytes, array.end, readAt);
      end = changes.readRun(n, at);
      if (end === undefined) return undefined;
    }
    at = skipSpace(bytes, end);
  }
  if (at !== array.end - 1) return undefined;
  return changes ? changes.page() : same(before);
}
