import type { ErrorCode } from '../core/errors.js';
import { isObject, membersAround, membersOfHeaders, type Sign, wholeNumber } from './around.js';
import { denialOfSuccess, sentenceOf } from './denial.js';
import { contradictedEnd, type Doubted, deniedPage } from './doubt.js';
import { type FieldNames, NOWHERE, type Place, placeOf, valueAt } from './fields.js';
import { arrayElsewhere, noArrayAt } from './no-records.js';
import type { Envelope } from './page-envelope.js';
import type { ParsedResponse } from './parsed-response.js';
import { deniesMore, describeSign, isNameOfMore, moreBehind, signsOfMore } from './signs-of-more.js';
import { flagOf, headerValue, nextOf, nextOfRecord, type Said, type SaidNext, totalOf } from './spellings.js';
import { successDenied, unusablePage } from './unusable-page.js';

/** The part of a catalogue entry that says how the pages of a list are written. */
export interface ListShape {
  readonly resource: string;
  /** Dot path to the paging envelope in the response; '' = the response itself; 'none' = a bare array. */
  readonly envelope: string;
  readonly fields?: FieldNames | undefined;
  /** Constants that the requests carry in their query. */
  readonly query?: Readonly<Record<string, string>> | undefined;
}

/** Names of how many records a page has at most, as `plainName` has them. */
const SIZE_NAMES = new Set(['limit', 'perpage', 'pagesize', 'pagelimit', 'recordsperpage', 'resultsperpage']);

type Field = 'total' | 'hasNext' | 'next';

const NO_TOTAL = 'no whole number of 0 or more';
const NO_NEXT = 'neither a text nor a whole number of at most 15 digits, nor an object that holds one as its link or token';

/**
 * Finds the values of an envelope where the catalogue entry, or else the style, says that they stand. Whatever is missing, of another
 * type or in contradiction is an error and never "the end of the list".
 */
export class EnvelopeFields {
  readonly dataPath: readonly string[];
  readonly #resource: string;
  readonly #envelope: readonly string[];
  readonly #places: Readonly<Record<Field, Place>>;
  readonly #named: FieldNames;
  readonly #ignored: readonly string[];

  /** `standard`: the places of the style, for lists that name none. A bare array has no members. */
  constructor({ resource, envelope, fields = {} }: ListShape, standard: Partial<Record<Field, string>>) {
    const isBare = envelope === 'none' || fields.data === 'none';
    const at = (field: Field): Place => {
      const name = fields[field] ?? (isBare && !standard[field]?.startsWith('header ') ? undefined : standard[field]);
      return name === undefined ? NOWHERE : placeOf(name);
    };
    this.#resource = resource;
    this.#envelope = envelope === '' || envelope === 'none' ? [] : envelope.split('.');
    this.dataPath = isBare ? [] : [...this.#envelope, ...(fields.data ?? 'data').split('.')];
    this.#places = { total: at('total'), hasNext: at('hasNext'), next: at('next') };
    this.#named = fields;
    this.#ignored = (fields.ignore ?? []).map((member) => member.replace(/^header .*/, (header) => header.toLowerCase()));
  }

  /** Whether the catalogue entry, and not the style, says where the value stands. */
  isNamed(field: Field): boolean {
    return this.#named[field] !== undefined;
  }

  isNowhere(field: Field): boolean {
    return this.#places[field].kind === 'nowhere';
  }

  /** Whether some value of the envelope is in a header. */
  get readsHeaders(): boolean {
    return Object.values(this.#places).some(({ kind }) => kind === 'header');
  }

  get readsLastRecord(): boolean {
    return this.#places.next.kind === 'last-record';
  }

  envelopeOf({ rest }: Pick<ParsedResponse, 'rest'>): unknown {
    return this.#envelope.reduce(
      (holder, name) => (isObject(holder) ? (holder as Record<string, unknown>)[name] : undefined),
      rest,
    );
  }

  /** totalRecords, or what the entry names in its place; undefined where the page does not tell it. */
  total(response: ParsedResponse): number | undefined {
    return this.#understood('total', totalOf(this.#value('total', response), this.#places.total.kind === 'header'), NO_TOTAL);
  }

  /** Whether another page follows; undefined where the page does not tell it. */
  hasNext(response: ParsedResponse): boolean | undefined {
    return this.#understood('hasNext', flagOf(this.#value('hasNext', response)), 'neither true nor false');
  }

  /** The value that leads to the next page. `leadsBy`: the members of an object that do. */
  next(response: ParsedResponse, leadsBy: ReadonlySet<string>): Exclude<SaidNext, { kind: 'unclear' }> {
    const value = this.#value('next', response);
    const next = this.readsLastRecord ? nextOfRecord(value) : nextOf(value, leadsBy);
    if (next.kind === 'unclear')
      return this.fail('malformed_envelope', `${this.nameOf('next')} is ${next.found}, and ${NO_NEXT}`);
    if (next.kind !== 'named' && this.readsLastRecord && response.count > 0 && this.hasNext(response) !== false)
      return this.fail(
        'malformed_envelope',
        `${this.nameOf('next')} tells nothing, and the next page is asked for by it; name a member that each record has`,
      );
    // The token becomes a part of the checkpoint, in which PostgreSQL keeps neither.
    if (next.kind === 'named' && /[\0\p{Surrogate}]/u.test(String(next.token)))
      return this.fail('malformed_envelope', `${this.nameOf('next')} holds a NUL or half of a surrogate pair`);
    return next;
  }

  /** The value as JSON has it; of a header, its text. Undefined where there is none. */
  #value(field: Field, response: ParsedResponse): unknown {
    const place = this.#places[field];
    switch (place.kind) {
      case 'nowhere':
        return undefined;
      case 'header':
        return headerValue(response.headers[place.name]);
      case 'last-record':
        return response.count === 0 ? undefined : valueAt(response.lastRecord(), place.member);
      case 'member':
        return valueAt(this.envelopeOf(response), place.path);
    }
  }

  #understood<T>(field: Field, said: Said<T>, wrong: string): T | undefined {
    if (said.kind === 'unclear') return this.fail('malformed_envelope', `${this.nameOf(field)} is ${said.found}, and ${wrong}`);
    return said.kind === 'said' ? said.value : undefined;
  }

  /** The value that a first page must tell and this one does not, where `value` is undefined. */
  lacking(field: Field, value: unknown): string | undefined {
    return value === undefined && !this.isNowhere(field) ? `${this.nameOf(field)} is missing, or tells nothing` : undefined;
  }

  /**
   * Throws MusterError `malformed_envelope` for a first page that lacks a value that it must tell. `requests`: how many the pass has made before. `full`: a page of
   * fewer records need not tell it, since the list is read on until nothing comes.
   */
  checkFirst(requests: number, { lacks, count }: Envelope & Pick<ParsedResponse, 'count'>, full = 0): void {
    if (requests === 0 && lacks !== undefined && count >= full) this.fail('malformed_envelope', lacks);
  }

  /**
   * Judges an envelope without an array of records. An empty or null value is accepted unless something signals records, here or on
   * a further page. If the member is absent, the page must also state that there are none (a total of 0, no next page): an error that a
   * gateway sends with status 200 lacks the member, too. Throws MusterError `malformed_envelope`.
   */
  judged(response: ParsedResponse, read: Envelope): Envelope {
    const { noRecords, rest } = response;
    if (noRecords === undefined) return read;
    // Without a body, a response has no members.
    if (noRecords === 'no-content') return { ...read, lacks: undefined, isBlank: true };
    const problem = noArrayAt(rest, this.dataPath);
    const { total, hasNext, nextToken, isEndTold, isSilent, signs } = read;
    const more = moreBehind(signs, { page: 0, position: 0 });
    const speaks = [
      total !== undefined && total > 0 && `${this.nameOf('total')} is ${total}`,
      hasNext === true && `${this.nameOf('hasNext')} is true`,
      nextToken !== undefined && `${this.nameOf('next')} names another page`,
      more && describeSign(more),
    ].find(Boolean);
    if (speaks) return this.fail('malformed_envelope', `${problem}, but ${speaks}`);
    const isPassedOver = (member: string) => this.#isPassedOver(member);
    const isMissing = noRecords === 'missing';
    const elsewhere = arrayElsewhere(rest, isMissing && total !== 0, isPassedOver);
    if (elsewhere !== undefined)
      return this.fail(
        'malformed_envelope',
        `${problem}, but ${elsewhere} is one; check fields.data, or name it in fields.ignore`,
      );
    const isTold = total === 0 || hasNext === false || isEndTold === true || isSilent === false;
    const around = membersAround(rest, this.dataPath.slice(0, -1));
    if (isTold || deniesMore(around)) return read;
    if (isMissing) return this.fail('malformed_envelope', `${problem}, and nothing says that there are no records`);
    const sentence = sentenceOf(around, isPassedOver);
    if (sentence === undefined) return rest === null ? { ...read, isBlank: true } : read;
    const { member } = sentence;
    return this.fail(
      'malformed_envelope',
      `${problem}, and beside it ${member} says something, perhaps why there is none; if it means nothing, write fields: { ignore: [${this.#fromEnvelope(member)}] }`,
    );
  }

  /**
   * Finds further signs around the records that more follow, and a denial that the request succeeded. Throws MusterError `success_denied` where
   * no records came with that: an empty list is another thing.
   */
  around(response: ParsedResponse): Pick<Envelope, 'signs' | 'deniesMore' | 'denied'> {
    const isPassedOver = (member: string) => this.#isPassedOver(member);
    const around = membersAround(response.rest, this.dataPath.slice(0, -1));
    const denial = denialOfSuccess(around, isPassedOver);
    if (denial && response.count === 0) throw successDenied(this.#resource, denial);
    const signs = signsOfMore(response, around, isPassedOver);
    const denied = denial && deniedPage(denial, this.#fromEnvelope(denial.member));
    const deniesIt = response.count === 0 && deniesMore(around, response);
    return { ...(signs.length > 0 && { signs }), ...(deniesIt && { deniesMore: true }), ...(denied && { denied }) };
  }

  /** How many records a page of the list has at most, as a member or header says that the entry does not name. */
  statedSize(response: ParsedResponse): number | undefined {
    const members = [...membersAround(response.rest, this.dataPath.slice(0, -1)).flat(), ...membersOfHeaders(response)];
    return (
      wholeNumber(members.find(({ member, name }) => SIZE_NAMES.has(name) && !this.#isPassedOver(member))?.value) || undefined
    );
  }

  /** Whether the place is called as such a value is in many services: a member that only happens to be false is not. */
  isCalledMore(): boolean {
    return isNameOfMore(this.nameOf('hasNext').replace(/^the header (x-)?|^.*\./, ''));
  }

  contradictedBy(sign: Sign): Doubted {
    return contradictedEnd(sign, this.#fromEnvelope(sign.member));
  }

  /** Entries name members from the response's root, or from the envelope. With a member, everything that it holds is passed over. */
  #isPassedOver(member: string): boolean {
    const place = this.#fromEnvelope(member);
    const isOwn = Object.values(this.#places).some(
      (own) => (own.kind === 'member' && own.path === place) || (own.kind === 'header' && `header ${own.name}` === member),
    );
    const isIn = (ignored: string) => [member, place].some((each) => each === ignored || each.startsWith(`${ignored}.`));
    return isOwn || this.#ignored.some(isIn);
  }

  #fromEnvelope(member: string): string {
    const envelope = `${this.#envelope.join('.')}.`;
    return member.startsWith(envelope) ? member.slice(envelope.length) : member;
  }

  nameOf(field: Field): string {
    const place = this.#places[field];
    if (place.kind === 'header') return `the header ${place.name}`;
    return place.kind === 'last-record' ? `${place.member} of the last record` : place.kind === 'member' ? place.path : field;
  }

  fail(code: ErrorCode, problem: string): never {
    throw unusablePage(this.#resource, code, problem);
  }
}

/**
 * The totals of a list that is asked for by position. `ignoreTotals` leaves them unread, as if the list told none: for a list that was
 * caught contradicting itself.
 */
export function readTotals(fields: EnvelopeFields, response: ParsedResponse, ignoreTotals: boolean): Envelope {
  const around = fields.around(response);
  const hasNext = fields.hasNext(response);
  const lacksNext = fields.lacking('hasNext', hasNext);
  if (ignoreTotals || fields.isNowhere('total')) return fields.judged(response, { hasNext, lacks: lacksNext, ...around });
  const total = fields.total(response);
  const lacks = fields.lacking('total', total) ?? lacksNext;
  const read = fields.judged(response, { total, hasNext, lacks, ...around });
  const { count } = response;
  const shown = fields.isNamed('total') ? undefined : valueAt(fields.envelopeOf(response), 'totalDisplayRecords');
  const display = totalOf(shown, false);
  if (display.kind === 'unclear')
    return fields.fail('malformed_envelope', `totalDisplayRecords is ${display.found}, and ${NO_TOTAL}`);
  if (display.kind === 'said' && display.value !== count)
    return fields.fail('contradicting_envelope', `totalDisplayRecords is ${display.value}, but data holds ${count}`);
  if (total !== undefined && total < count)
    return fields.fail('contradicting_envelope', `${fields.nameOf('total')} is ${total}, but data alone holds ${count}`);
  return read;
}
