import { type ErrorCode, MusterError } from '../core/errors.js';
import { type FieldNames, NOWHERE, type Place, placeOf, valueAt } from './fields.js';

/** What a response says around its records. */
export interface Envelope {
  /** Records of the whole list. */
  readonly total?: number | undefined;
  /** What leads to the next page of a list whose pages name each other; undefined on the last one. */
  readonly nextToken?: string | number | undefined;
  /** Whether another page follows, where the list says so and its pages do not name each other. */
  readonly hasNext?: boolean | undefined;
  /** A list whose pages name each other: the page names none where the entry looks, but something beside it looks like such a name. */
  readonly seemsToGoOn?: boolean;
}

/** A response, as far as its envelope is concerned. */
export interface Answer {
  /** The parsed response, with an empty array in the place of its records. */
  readonly rest: unknown;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The address that was asked. */
  readonly url: string;
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

  /** `standard`: the members of the style, for lists that name none. A bare array has none of them. */
  constructor({ resource, envelope, fields = {} }: ListShape, standard: Partial<Record<Field, string>>) {
    const isBare = envelope === 'none' || fields.data === 'none';
    const at = (field: Field): Place => {
      const name = fields[field] ?? (isBare ? undefined : standard[field]);
      return name === undefined ? NOWHERE : placeOf(name);
    };
    this.#resource = resource;
    this.#envelope = envelope === '' || envelope === 'none' ? [] : envelope.split('.');
    this.dataPath = isBare ? [] : [...this.#envelope, ...(fields.data ?? 'data').split('.')];
    this.#places = { total: at('total'), hasNext: at('hasNext'), next: at('next') };
    this.#named = fields;
  }

  /** Whether the catalogue entry, and not the style, says where the value stands. */
  isNamed(field: Field): boolean {
    return this.#named[field] !== undefined;
  }

  isNowhere(field: Field): boolean {
    return this.#places[field].kind === 'nowhere';
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
   * Whether anything around the records looks as if another page followed: a member or header that is called like a token, a link or a flag
   * for it and has a value, wherever the entry looks itself.
   */
  seemsToGoOn(answer: Answer): boolean {
    if (/rel="?next/i.test(answer.headers['link'] ?? '')) return true;
    const around = [Object.entries(answer.headers), ...membersOf(answer.rest)];
    return around.flat().some(([name, value]) => leadsOn(name, value));
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
  const hasNext = fields.hasNext(answer);
  if (ignoreTotals || fields.isNowhere('total')) return { hasNext };
  const total = fields.total(answer, true)!;
  const { count } = answer;
  const shown = fields.isNamed('total') ? undefined : fields.envelopeOf(answer)['totalDisplayRecords'];
  if (shown !== undefined && !isCount(shown))
    return fields.fail('malformed_envelope', 'totalDisplayRecords is no whole number of 0 or more');
  if (shown !== undefined && shown !== count)
    return fields.fail('contradicting_envelope', `totalDisplayRecords is ${shown}, but data holds ${count}`);
  if (total < count)
    return fields.fail('contradicting_envelope', `${fields.nameOf('total')} is ${total}, but data alone holds ${count}`);
  return { total, hasNext };
}

/** The members of a response, and those of the objects right below it. */
function membersOf(rest: unknown): [string, unknown][][] {
  if (!isObject(rest)) return [];
  const members = Object.entries(rest);
  return [
    members,
    ...members
      .map(([, value]) => value)
      .filter(isObject)
      .map(Object.entries),
  ];
}

const NAMES_A_PAGE = /(^|[^a-z])next$|next[-_]?(page|cursor|token|link|url|href)|continuation|skiptoken/i;
const SAYS_MORE = /^(has|is)?[-_]?(next|more|truncated)/i;

/** Whether a member of this name and value may lead to another page. */
function leadsOn(name: string, value: unknown): boolean {
  if (value === true) return SAYS_MORE.test(name);
  const link = isObject(value) && 'href' in value ? value.href : value;
  return typeof link === 'string' && link !== '' && NAMES_A_PAGE.test(name);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The error of a parsed response that has no array where the list's entry says. */
export function noArray(response: unknown, resource: string, path: readonly string[]): MusterError {
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
