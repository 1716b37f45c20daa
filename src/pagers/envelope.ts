import { type ErrorCode, MusterError } from '../core/errors.js';
import { type AnswerAround, membersAround, type Sign } from './around.js';
import { denialOfSuccess } from './denial.js';
import { type FieldNames, NOWHERE, type Place, placeOf, valueAt } from './fields.js';
import { contradictedEnd, deniedPage, type Doubted } from './doubt.js';
import { describeSign, signsOfMore } from './signs-of-more.js';

/** What a response says around its records. */
export interface Envelope {
  /** Records of the whole list. */
  readonly total?: number | undefined;
  /** What leads to the next page of a list whose pages name each other; undefined on the last one. */
  readonly nextToken?: string | number | undefined;
  /** Whether another page follows, where the list says so and its pages do not name each other. */
  readonly hasNext?: boolean | undefined;
  /** Whether the page says that none follows, where the entry, or else the style, looks for that. Else its end is inferred from what it lacks. */
  readonly isEndTold?: boolean | undefined;
  /** A list whose pages name each other: the page says nothing of another, neither that there is one nor that there is none. */
  readonly isSilent?: boolean | undefined;
  /** Whatever else around the records may say that more follow. */
  readonly signs?: readonly Sign[] | undefined;
  /** The doubt about a page that says itself to be a failure. Such a page without records is an error. */
  readonly denied?: Doubted | undefined;
}

/** What a page, or an answer that is kept, says around its records, and nothing else of it. */
export function envelopeOf({ total, nextToken, hasNext, isEndTold, isSilent, signs, denied }: Envelope): Envelope {
  return {
    total,
    nextToken,
    hasNext,
    ...(isEndTold && { isEndTold }),
    ...(isSilent && { isSilent }),
    ...(signs && { signs }),
    ...(denied && { denied }),
  };
}

/** A response, as far as its envelope is concerned. */
export interface Answer extends AnswerAround {
  /** Records of the page. */
  readonly count: number;
  /** The last record, parsed; undefined on an empty page. Only for pagers that say that they read it. */
  lastRecord(): unknown;
}

/** What of a catalogue entry says how the pages of a list are written. */
export interface ListShape {
  readonly resource: string;
  /** Dot path to the paging envelope in the response; '' = the response itself; 'none' = a bare array. */
  readonly envelope: string;
  readonly fields?: FieldNames | undefined;
  /** Constants that the requests carry in their query. */
  readonly query?: Readonly<Record<string, string>> | undefined;
}

type Field = 'total' | 'hasNext' | 'next';

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

  /** Whether some value of the envelope stands in a header. */
  get readsHeaders(): boolean {
    return Object.values(this.#places).some(({ kind }) => kind === 'header');
  }

  get readsLastRecord(): boolean {
    return this.#places.next.kind === 'last-record';
  }

  /** The value as JSON has it; of a header, its text. Undefined where there is none. */
  value(field: Field, answer: Answer): unknown {
    const place = this.#places[field];
    switch (place.kind) {
      case 'nowhere':
        return undefined;
      case 'header':
        return answer.headers[place.name];
      case 'last-record':
        return answer.count === 0 ? undefined : valueAt(answer.lastRecord(), place.member);
      case 'member':
        return valueAt(this.envelopeOf(answer), place.path);
    }
  }

  envelopeOf({ rest }: Answer): Readonly<Record<string, unknown>> {
    return this.#envelope.reduce((holder, name) => (holder as Record<string, never>)[name]!, rest as Record<string, unknown>);
  }

  /** totalRecords, or what the entry names in its place. `isRequired`: the list must say it, unless it stands nowhere. */
  total(answer: Answer, isRequired: boolean): number | undefined {
    const value = this.value('total', answer);
    const total = this.#places.total.kind === 'header' && /^\d{1,15}$/.test(String(value)) ? Number(value) : value;
    if (isCount(total)) return total;
    if (this.isNowhere('total')) return undefined;
    if (isRequired || (this.isNamed('total') && value !== undefined && value !== null))
      return this.fail('malformed_envelope', `${this.nameOf('total')} is missing or no whole number of 0 or more`);
    return undefined;
  }

  /** Whether another page follows; undefined where the list does not say it. */
  hasNext(answer: Answer): boolean | undefined {
    if (this.isNowhere('hasNext')) return undefined;
    const value = this.value('hasNext', answer);
    if (typeof value === 'boolean') return value;
    if (this.#places.hasNext.kind === 'header' && /^(true|false)$/i.test(String(value))) return /^true$/i.test(String(value));
    return this.fail('malformed_envelope', `${this.nameOf('hasNext')} is missing or neither true nor false`);
  }

  /**
   * What else around the records may say that more follow, and what denies that the request succeeded. Throws MusterError `success_denied` where
   * no records came with that: an empty list is another thing.
   */
  around(answer: Answer): Pick<Envelope, 'signs' | 'denied'> {
    const isPassedOver = (member: string) => this.#isPassedOver(member);
    const around = membersAround(answer.rest, this.#envelope);
    const denial = denialOfSuccess(around, isPassedOver);
    if (denial && answer.count === 0) throw successDenied(this.#resource, denial);
    const signs = signsOfMore(answer, around, isPassedOver);
    const denied = denial && deniedPage(denial, this.#fromEnvelope(denial.member));
    return { ...(signs.length > 0 && { signs }), ...(denied && { denied }) };
  }

  contradictedBy(sign: Sign): Doubted {
    return contradictedEnd(sign, this.#fromEnvelope(sign.member));
  }

  /** Members are named from the answer's root, or from the envelope, as everywhere in an entry; whoever is named has what it holds passed over, too. */
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
export function readTotals(fields: EnvelopeFields, answer: Answer, ignoreTotals: boolean): Envelope {
  const around = fields.around(answer);
  const hasNext = fields.hasNext(answer);
  if (ignoreTotals || fields.isNowhere('total')) return { hasNext, ...around };
  const total = fields.total(answer, true)!;
  const { count } = answer;
  const shown = fields.isNamed('total') ? undefined : fields.envelopeOf(answer)['totalDisplayRecords'];
  if (shown !== undefined && !isCount(shown))
    return fields.fail('malformed_envelope', 'totalDisplayRecords is no whole number of 0 or more');
  if (shown !== undefined && shown !== count)
    return fields.fail('contradicting_envelope', `totalDisplayRecords is ${shown}, but data holds ${count}`);
  if (total < count)
    return fields.fail('contradicting_envelope', `${fields.nameOf('total')} is ${total}, but data alone holds ${count}`);
  return { total, hasNext, ...around };
}

/** An answer of status 200 that is a failure by its own words: the service is asked again, as after any failure of it. */
function successDenied(resource: string, denial: Sign): MusterError {
  return new MusterError(
    'success_denied',
    `The list ${resource} answered without records, and says itself that it failed: ${describeSign(denial)}. ` +
      `It is asked again later; if this means nothing, write fields: { ignore: [${denial.member}] } into the entry of this list.`,
    { details: { resource, member: denial.member } },
  );
}

/** The error of a parsed response that has no array where the list's entry says. */
export function noArray(response: unknown, resource: string, path: readonly string[]): MusterError {
  const denial = denialOfSuccess(membersAround(response, path.slice(0, -1)), () => false);
  if (denial) return successDenied(resource, denial);
  let holder = response;
  for (const [depth, name] of path.entries()) {
    if (typeof holder !== 'object' || holder === null || Array.isArray(holder) || !Object.hasOwn(holder, name))
      return unusablePage(resource, 'malformed_envelope', `${path.slice(0, depth + 1).join('.')} is missing`);
    holder = (holder as Record<string, unknown>)[name];
  }
  return unusablePage(resource, 'malformed_envelope', `${path.join('.') || 'the answer itself'} is not an array`);
}

function unusablePage(resource: string, code: ErrorCode, problem: string): MusterError {
  return new MusterError(code, `The answer of the list ${resource} cannot be used as a page: ${problem}.`, {
    details: { resource },
  });
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
