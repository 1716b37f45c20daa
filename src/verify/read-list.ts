import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Endpoint, pageRequest } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { isMusterError, type MusterError } from '../core/errors.js';
import { eachInPortions, inTurns } from '../core/turns.js';
import type { ApiClient, ApiResponse } from '../http/api-client.js';
import { MemoryShort, type Reservation, type ResponseMemory } from '../http/response-memory.js';
import type { TokenSource } from '../http/token-source.js';
import { childPrefix } from '../mirror/mirror-table.js';
import { inPage, type ListSpan, type PageSpan } from '../observability/tracing.js';
import type { JsonObject, PageInput, Pager } from '../pagers/pager.js';
import { pagerFor } from '../pagers/registry.js';
import { unstorableReason } from '../pagers/unstorable.js';
import { redact } from '../privacy/redact.js';
import type { ListSuppressions } from '../privacy/suppressions.js';
import { ownSignOfEnd, ownSignOfMore } from './own-signs.js';
import { heapOfParsed, idIn, NO_CONTENT, readAnswer } from './read-answer.js';

/** A record as the second reader received it. */
export interface SecondRecord {
  /** The id of its row in the mirror; for a record that cannot be kept, a digest that no row has. */
  readonly id: string;
  /** Null where the mirror cannot or must not keep the record. */
  readonly text: string | null;
}

export interface ReadListDependencies {
  readonly api: Pick<ApiClient, 'request'>;
  readonly tokens: TokenSource;
  readonly companyId: string;
  readonly answers: ResponseMemory;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly signal: AbortSignal;
  readonly span: ListSpan | undefined;
  /** Records of forgotten persons are passed over. Undefined: there are none. */
  readonly suppressions: ListSuppressions | undefined;
  /** How many of these keys the pass has received before. */
  readonly countKnown: (pass: number, ids: readonly string[]) => Promise<number>;
}

export interface PageOfRecords {
  /** Counts the readings of the list from its beginning, from 1. */
  readonly pass: number;
  readonly records: readonly SecondRecord[];
  /** The ETag of the answer. */
  readonly etag?: string | undefined;
  /** Given after the last page, without records: why that may not be the end of the list. */
  readonly contradiction?: string | undefined;
}

/** Bytes of an id: more than an index of the database holds beside environment and company. */
const MOST_ID_BYTES = 2_000;
/** Expected bytes of a response before anything is known of it. */
const EXPECTED_BYTES = 1024 * 1024;
/** Readings of a list whose records do not come to its total, or that lost its place. */
const MOST_PASSES = 3;
/** Attempts for a page that was cut from a list while that changed. */
const REPEATS = 3;
const REPEAT_DELAY_MS = 300;
const UNUSABLE = new Set<string>(['contradicting_envelope', 'malformed_envelope', 'malformed_response', 'success_denied']);
/** Statuses that a service answers for a parent that it does not know any more, and for one that lacks the list, where the catalogue calls that optional. */
const GONE = new Set([404, 410]);
const LACKING = new Set([402, 403, 404]);

/**
 * Asks for a list from its beginning to its end, one page after the other, without ETags, and gives its pages as they come. The list's pager decides what to
 * ask for next, as in a walk: that is the protocol of the service. Responses are read by code of its own (read-answer.ts).
 *
 * A list from which records are missing where its total says that there are more is read again: records move while a list is read. The
 * comparison must not conclude from a record that did not come that there is none.
 */
export async function* readList(
  endpoint: Endpoint,
  id: readonly string[],
  deps: ReadListDependencies,
  parent?: string,
): AsyncGenerator<PageOfRecords> {
  const pager = pagerFor(endpoint);
  let ignoreTotals = false;
  for (let pass = 1; ; pass += 1) {
    const isLast = pass === MOST_PASSES;
    try {
      const { isWhole, contradiction } = yield* readPass({ endpoint, pager, id, deps, parent, pass, ignoreTotals });
      if (!isWhole && !isLast) continue;
      if (contradiction !== undefined) yield { pass, records: [], contradiction };
      return;
    } catch (error) {
      const meaning = error instanceof LostPlace ? error.meaning : undefined;
      if (meaning === undefined || isLast) throw error instanceof LostPlace ? error.cause : error;
      ignoreTotals ||= meaning === 'contradicted';
    }
  }
}

/** The pass leads no further; another one from the beginning may. */
class LostPlace extends Error {
  readonly meaning: 'token-lost' | 'contradicted';

  constructor(meaning: 'token-lost' | 'contradicted', cause: MusterError) {
    super(cause.message, { cause });
    this.meaning = meaning;
  }
}

interface Pass {
  readonly endpoint: Endpoint;
  readonly pager: Pager;
  readonly id: readonly string[];
  readonly deps: ReadListDependencies;
  readonly parent: string | undefined;
  readonly pass: number;
  readonly ignoreTotals: boolean;
}

/** Whether as many records came as the list says that it has, and none after its end; and the evidence against that end. */
interface PassRead {
  readonly isWhole: boolean;
  readonly contradiction?: string | undefined;
}

async function* readPass(of: Pass): AsyncGenerator<PageOfRecords, PassRead> {
  const { pager, deps, pass } = of;
  let state: JsonObject = pager.first();
  let failures = 0;
  let distinct = 0;
  let total: number | undefined;
  let firstIds: readonly string[] | undefined;
  let lastIds: readonly string[] = [];
  const tokens = new Set<string | number>();
  let promise: string | undefined;
  for (;;) {
    try {
      const { records, envelope, etag, sign, isEndSaid } = await askFor(of, pager.request(state));
      const ids = [...new Set(records.map((record) => record.id))];
      const known = await deps.countKnown(pass, ids);
      const advance = pager.next(
        state,
        { ...envelope, count: records.length },
        {
          repeats: known,
          isFirstPage: known === records.length && isDeepStrictEqual(ids, firstIds),
          endsAsBefore: isDeepStrictEqual(ids.slice(-lastIds.length), lastIds),
          hasToken: (token) => tokens.has(token),
        },
      );
      failures = 0;
      ({ state } = 'state' in advance ? advance : { state });
      if (advance.kind === 'again') continue;
      // An empty page that says nothing takes back nothing.
      if (sign !== undefined || isEndSaid || records.length > 0) promise = sign;
      if (records.length > 0) [firstIds, lastIds] = [firstIds ?? ids, ids];
      if (envelope.nextToken !== undefined) tokens.add(envelope.nextToken);
      distinct += ids.length - known;
      total = envelope.total ?? total;
      yield { pass, records, etag };
      if (advance.kind !== 'done') continue;
      const beyond = await pageAfterEnd(of, state, records.length);
      const isSaid = total === undefined && envelope.isEndTold !== true && envelope.hasNext !== false;
      if (beyond.length === 0) {
        const isWhole = total === undefined || distinct >= total;
        return {
          isWhole,
          contradiction: isSaid && promise !== undefined ? `${promise} says that more records follow` : undefined,
        };
      }
      yield { pass, records: beyond };
      return { isWhole: false, contradiction: `${beyond.length} records follow the end of the list` };
    } catch (error) {
      if (!isMusterError(error)) throw error;
      if (of.parent !== undefined && isLacking(error, of.endpoint)) return { isWhole: true };
      failures += 1;
      if (failures <= REPEATS && UNUSABLE.has(error.code)) {
        await deps.clock.sleep(REPEAT_DELAY_MS * failures, deps.signal);
        continue;
      }
      const meaning = pager.meaningOf(error, state);
      if (meaning?.kind === 'ended') return { isWhole: true, contradiction: meaning.doubted?.detail };
      if (meaning?.kind !== 'again') throw meaning === undefined ? error : new LostPlace(meaning.kind, error);
      ({ state } = meaning);
    }
  }
}

/** Whether the API itself says that the parent is gone, or has no such list. */
function isLacking({ code, details }: MusterError, { optional }: Endpoint): boolean {
  const status = Number(details['status']);
  const isSaid = code === 'service_refused' && details['own_words'] === true;
  return isSaid && (GONE.has(status) || (optional === true && LACKING.has(status)));
}

/** The records after the page that ended a list by position which the pass has not received: the end is seen, and not only concluded. */
async function pageAfterEnd(of: Pass, state: JsonObject, count: number): Promise<readonly SecondRecord[]> {
  const input = of.pager.beyond(state, count);
  if (input === undefined) return [];
  try {
    const { records } = await askFor(of, input);
    const ids = [...new Set(records.map(({ id }) => id))];
    return (await of.deps.countKnown(of.pass, ids)) === ids.length ? [] : records;
  } catch (error) {
    // Any refusal says that there is no such page, but a 401, which says nothing of the page.
    const isRefused = isMusterError(error, 'service_refused') && error.details['status'] !== 401;
    if (isRefused || (isMusterError(error) && UNUSABLE.has(error.code))) return [];
    throw error;
  }
}

function askFor(of: Pass, input: PageInput): ReturnType<typeof readPage> {
  return inPage(of.deps.span, (span) => readPage(of, input, span));
}

async function readPage({ endpoint, pager, id, deps, parent, ignoreTotals }: Pass, input: PageInput, span?: PageSpan) {
  const { resource } = endpoint;
  const { response, bytes, memory } = await send({ endpoint, pager, deps, parent }, input, span);
  try {
    const { headers, url } = response;
    const { rest, texts, noRecords } =
      response.status === 204 ? NO_CONTENT : await inTurns(readAnswer(bytes, { resource, dataPath: pager.dataPath }));
    const lastRecord = () => JSON.parse(texts.at(-1)!) as unknown;
    const envelope = pager.readEnvelope({ rest, headers, url, count: texts.length, noRecords, lastRecord }, ignoreTotals);
    const prefix = parent === undefined ? '' : childPrefix(parent);
    const isForgotten = (text: string) =>
      deps.suppressions !== undefined && isSuppressed(text, deps.suppressions, { endpoint, id, prefix });
    const records = await inTurns(recordsOf(texts, (text) => recordOf(text, id, prefix, isForgotten(text))));
    const sign = ownSignOfMore({ rest, headers }, endpoint.fields?.ignore ?? []);
    return { envelope, etag: headers['etag'], records, sign, isEndSaid: ownSignOfEnd({ rest, headers }) };
  } finally {
    memory.release();
  }
}

/** Reads the records of an answer, in portions. */
function* recordsOf(texts: readonly string[], read: (text: string) => SecondRecord): Generator<void, SecondRecord[]> {
  const records: SecondRecord[] = [];
  yield* eachInPortions(
    texts,
    (text) => records.push(read(text)),
    (text) => text.length,
  );
  return records;
}

/** Waits for as much memory as the response takes, and asks again with twice as much where its length was not known. */
async function send(
  { endpoint, pager, deps, parent }: Pick<Pass, 'endpoint' | 'pager' | 'deps' | 'parent'>,
  input: PageInput,
  span: PageSpan | undefined,
): Promise<{ response: ApiResponse; bytes: Buffer; memory: Reservation }> {
  const { api, tokens, answers, signal } = deps;
  const request = { ...pageRequest(endpoint, deps.companyId, input, parent), tokens, signal, onRetry: () => span?.retried() };
  for (let expected = EXPECTED_BYTES, heap = 0; ; ) {
    signal.throwIfAborted();
    const memory = answers.reserve(expected, heap);
    try {
      await memory.granted;
      const response = await api.request({ ...request, memory });
      span?.received(response);
      // The mirror has what the privacy rules left.
      const bytes = endpoint.privacy
        ? await inTurns(redact(response.bytes, pager.dataPath, endpoint.privacy, memory))
        : response.bytes;
      memory.fitMade(await inTurns(heapOfParsed(bytes)), bytes.length - response.bytes.length);
      return { response, bytes, memory };
    } catch (error) {
      memory.release();
      if (!(error instanceof MemoryShort)) throw error;
      if (error.heap > heap) heap = 2 * error.heap;
      else expected = Math.max(error.bytes, 2 * expected);
    }
  }
}

/** Whether a record is of a forgotten person, by all members that may be its id. */
function isSuppressed(
  text: string,
  suppressions: ListSuppressions,
  { endpoint, id, prefix }: Pick<Pass, 'endpoint' | 'id'> & { readonly prefix: string },
): boolean {
  const values = [...new Set([...endpoint.id, ...suppressions.members])].flatMap((name) => {
    const value = idIn(text, [name]);
    return value === undefined ? [] : [[name, prefix + value] as const];
  });
  return suppressions.personOf(new Map(values), id.length === 1 ? id[0] : undefined) !== undefined;
}

function recordOf(text: string, members: readonly string[], prefix: string, isForgotten: boolean): SecondRecord {
  const id = idIn(text, members);
  const isKept =
    !isForgotten && id !== undefined && Buffer.byteLength(prefix + id) <= MOST_ID_BYTES && unstorableReason(text) === undefined;
  if (isKept) return { id: prefix + id, text };
  return {
    id: `${prefix.slice(0, MOST_ID_BYTES / 4)}#${createHash('sha256').update(text).digest('hex').slice(0, 32)}`,
    text: null,
  };
}

/** The candidates for the id: the member that the mirror uses for the list, or else the first that a record of the page has. */
export function idMembers(kept: string | null, endpoint: Endpoint): readonly string[] {
  return kept === null ? endpoint.id : [kept];
}
