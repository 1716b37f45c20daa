import { z } from 'zod';
import type { MusterError } from '../core/errors.js';
import { ChainPager, type ChainState } from './chain.js';
import type { ListShape } from './envelope.js';
import { baseOfLinks, hostNamed, pathOfLink } from './link-address.js';
import { type Link, parseLinkHeader } from './link-header.js';
import type { ErrorMeaning, PageInput } from './pager.js';
import type { ParsedResponse } from './parsed-response.js';
import { isRefusedWith } from './refusal.js';
import { must, PAGE_SIZE, PARAMETER_NAME, type Placed } from './spec.js';
import { LINK_MEMBERS } from './spellings.js';

const host = must('a host name, with a port or without, and nothing else');
const HOST = z.string(host).transform((written, context) => {
  const name = hostNamed(written);
  if (name !== undefined) return name;
  context.addIssue({ code: 'custom', message: 'must be a host name, with a port or without, and nothing else' });
  return z.NEVER;
});

export const NEXT_LINK_SCHEMA = z.strictObject({
  style: z.literal('next-link'),
  in: z.literal('query', { error: 'must be query: a link has its parameters nowhere else' }).default('query'),
  sizeName: PARAMETER_NAME.default('$top'),
  size: PAGE_SIZE,
  constants: z.literal('keep', must('keep, or left out')).optional(),
  hosts: z.array(HOST, must('a list of host names')).min(1, must('a list of host names, or left out')).optional(),
});

/** The service decides how many records a page has. In OData, $top is the most records of all pages together. */
const NO_SIZE = 'none';
const LINK_HEADER = 'header link';
/** Relations of a list whose pages name each other: where one of them stands, the service says where its pages are. */
const PAGE_RELATIONS = ['next', 'prev', 'previous', 'first', 'last'];
/** Statuses with which services refuse parameters that their link does not have. */
const CONSTANTS_REFUSED = new Set([400, 403, 404, 422]);

/**
 * Pages by link: each page gives the address of the next one, in a member of the response (`fields.next`) or else in the Link header
 * (RFC 8288, rel=next).
 *
 *     -> GET …/shifts?$top=2             <- { value: [A, B], "@odata.nextLink": "https://api.example.com/…?$skiptoken=2" }
 *     -> GET …/…?$skiptoken=2            <- { value: [C] }                                                                done
 *
 * A link may be absolute, or relative to the address that was asked, or, in OData, to the response's context. It is asked for on the API's own
 * origin only, whatever scheme and port it has: a party that can write into a response must not get the access token. A link to another host is
 * refused, unless the entry's `hosts` say that the API calls itself so.
 *
 * Constants of the entry's `query` that a link lacks are added to it: else a filter or an expansion would hold for the first page alone. Where the
 * service refuses that, its links are asked as they came, and the walk proves nothing until the entry says `constants: keep`.
 */
export class NextLinkPager extends ChainPager {
  readonly #spec: Placed<z.output<typeof NEXT_LINK_SCHEMA>>;
  readonly #readsLinkHeader: boolean;
  readonly #hosts: readonly string[];
  /** Constants that a link must carry. */
  readonly #constants: readonly (readonly [string, string])[];

  constructor(list: ListShape, spec: Placed<z.output<typeof NEXT_LINK_SCHEMA>>) {
    super(list, spec.size, { next: LINK_HEADER });
    this.#spec = spec;
    this.#hosts = spec.hosts ?? [];
    this.#readsLinkHeader = (list.fields?.next ?? LINK_HEADER).toLowerCase() === LINK_HEADER;
    this.#constants = spec.constants === 'keep' ? [] : Object.entries(list.query ?? {});
  }

  request({ token, asGiven }: ChainState): PageInput {
    const { sizeName, size } = this.#spec;
    if (token !== null) {
      const query = asGiven ? undefined : this.#constantsLackedBy(String(token));
      return { link: String(token), ...(query && { query }) };
    }
    return { query: sizeName === NO_SIZE ? {} : { [sizeName]: String(size) } };
  }

  protected get members() {
    return { 'fields.next': this.fields.nameOf('next') };
  }

  protected readNext(response: ParsedResponse): ReturnType<ChainPager['readNext']> {
    const { fields } = this;
    const hasNext = fields.hasNext(response);
    const { link, isEndTold, isSilent } = this.#readsLinkHeader ? this.#fromLinkHeader(response) : this.#fromMember(response);
    const lacks = fields.lacking('hasNext', hasNext);
    if (hasNext === false) return { isEndTold: true };
    if (link === undefined) {
      if (hasNext === true) fields.fail('contradicting_envelope', `${fields.nameOf('hasNext')} is true, but no page is named`);
      return { isEndTold, isSilent, lacks };
    }
    return { nextToken: this.#pathOf(link, response), lacks };
  }

  override meaningOf(error: MusterError, state: ChainState): ErrorMeaning<ChainState> | undefined {
    const { token, asGiven } = state;
    const isRefused = isRefusedWith(error, CONSTANTS_REFUSED);
    const hasAdded = token !== null && !asGiven && this.#constantsLackedBy(String(token)) !== undefined;
    return isRefused && hasAdded ? { kind: 'again', state: { ...state, asGiven: true } } : super.meaningOf(error, state);
  }

  protected override get constantsLost(): string {
    const names = this.#constants.map(([name]) => name).join(', ');
    return (
      `The links of this list lack constants of its entry (query: ${names}), and the service refused them where they were added. ` +
      'If its links keep them by themselves, write pager: { constants: keep } into the entry.'
    );
  }

  #fromMember(response: ParsedResponse): ReadLink {
    const next = this.fields.next(response, LINK_MEMBERS);
    return {
      link: next.kind === 'named' ? next.token : undefined,
      isEndTold: next.kind === 'none' && next.spelling !== 'other',
      isSilent: next.kind === 'silent',
    };
  }

  #fromLinkHeader({ headers, url }: ParsedResponse): ReadLink {
    const header = headers['link'];
    const links = header === undefined ? [] : parseLinkHeader(header);
    if (!links) return this.fields.fail('malformed_envelope', 'the Link header cannot be read as a whole (RFC 8288)');
    const ofThisResponse = links.filter(({ anchor }) => anchor === undefined || isSameAddress(anchor, url, this.#hosts));
    const targets = [...new Set(ofThisResponse.filter(isTo('next')).map(({ target }) => target))];
    if (targets.length === 0 && links.some(isTo('next')))
      return this.fields.fail('malformed_envelope', 'the Link header names a next page, but of another address (anchor)');
    if (targets.length > 1) return this.fields.fail('malformed_envelope', 'the Link header names several next pages');
    return {
      link: targets[0],
      isEndTold: false,
      isSilent: !PAGE_RELATIONS.some((relation) => ofThisResponse.some(isTo(relation))),
    };
  }

  #pathOf(link: string | number, { rest, url }: ParsedResponse): string {
    const { fields } = this;
    const base = this.#readsLinkHeader ? url : baseOfLinks(rest, url, this.#hosts);
    const path = pathOfLink(String(link), { url, base, hosts: this.#hosts });
    if (typeof path === 'string') return path;
    if (path.kind === 'no_address') return fields.fail('malformed_envelope', 'the link to the next page is no http address');
    return fields.fail(
      'malformed_envelope',
      `the link to the next page leads to another host (${path.host}), and links are followed on the API's own only. If the API calls itself so, ` +
        `write pager: { hosts: [${path.host}] } into the entry: such links are then asked for on the API's own host`,
    );
  }

  /** The constants that a link does not name itself, in whatever case; undefined where it names them all. */
  #constantsLackedBy(link: string): Readonly<Record<string, string>> | undefined {
    const named = new Set([...new URLSearchParams(link.split('?')[1]).keys()].map((name) => name.toLowerCase()));
    const lacking = this.#constants.filter(([name]) => !named.has(name.toLowerCase()));
    return lacking.length === 0 ? undefined : Object.fromEntries(lacking);
  }
}

interface ReadLink {
  readonly link: string | number | undefined;
  readonly isEndTold: boolean;
  readonly isSilent: boolean;
}

function isTo(relation: string): (link: Link) => boolean {
  return ({ rel }) => rel.includes(relation);
}

/** Whether an address of the API is the one that was asked, under whatever scheme and port. */
function isSameAddress(address: string, url: string, hosts: readonly string[]): boolean {
  return pathOfLink(address, { url, hosts }) === pathOfLink(url, { url, hosts });
}
