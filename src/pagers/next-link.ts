import LinkHeader from 'http-link-header';
import { z } from 'zod';
import { ChainPager, type ChainState } from './chain.js';
import type { Answer, ListShape } from './envelope.js';
import { valueAt } from './fields.js';
import type { PageInput } from './pager.js';
import { PAGE_SIZE, PARAMETER_NAME, type Placed } from './spec.js';

export const NEXT_LINK_SCHEMA = z.strictObject({
  style: z.literal('next-link'),
  in: z.literal('query', { error: 'must be query: a link has its parameters nowhere else' }).default('query'),
  sizeName: PARAMETER_NAME.default('$top'),
  size: PAGE_SIZE,
});

/** The service decides how many records a page has. In OData, $top is the most records of all pages together. */
const NO_SIZE = 'none';

/**
 * Pages by link: each page gives the address of the next one, in a member of the response (`fields.next`) or else in the Link header
 * (RFC 8288, rel=next).
 *
 *     -> GET …/shifts?$top=2             <- { value: [A, B], "@odata.nextLink": "https://api.example.com/…?$skiptoken=2" }
 *     -> GET …/…?$skiptoken=2            <- { value: [C] }                                                                done
 *
 * A link may be absolute, or relative to the address that was asked, or, in OData, to the answer's context. It is followed on the API's own
 * origin only: whoever can write into an answer must not be sent the access token.
 */
export class NextLinkPager extends ChainPager {
  readonly #spec: Placed<z.output<typeof NEXT_LINK_SCHEMA>>;

  constructor(list: ListShape, spec: Placed<z.output<typeof NEXT_LINK_SCHEMA>>) {
    super(list, spec.size, {});
    this.#spec = spec;
  }

  request({ token }: ChainState): PageInput {
    const { sizeName, size } = this.#spec;
    if (token !== null) return { link: String(token) };
    return { query: sizeName === NO_SIZE ? {} : { [sizeName]: String(size) } };
  }

  protected get members() {
    return { 'fields.next': this.fields.isNowhere('next') ? 'the Link header' : this.fields.nameOf('next') };
  }

  protected nextToken(answer: Answer): string | undefined {
    const { fields } = this;
    const hasNext = fields.hasNext(answer);
    const link = fields.isNowhere('next') ? linkOf(answer.headers['link']) : this.usableToken(fields.value('next', answer));
    if (hasNext === false || link === undefined) {
      if (hasNext === true) fields.fail('contradicting_envelope', `${fields.nameOf('hasNext')} is true, but no page is named`);
      return undefined;
    }
    const base = fields.isNowhere('next') ? answer.url : contextOf(answer);
    const address = URL.canParse(String(link), base) ? new URL(String(link), base) : undefined;
    if (!address) return fields.fail('malformed_envelope', 'the link to the next page is no address');
    if (address.origin !== new URL(answer.url).origin)
      return fields.fail(
        'malformed_envelope',
        `the link to the next page leads to another host (${address.origin}), and links are followed on the API's own only`,
      );
    return address.pathname + address.search;
  }
}

/** What links in the members of an answer are relative to (OData JSON Format 4.01, 4.5.1). */
function contextOf({ rest, url }: Answer): string {
  const context = valueAt(rest, '@odata.context') ?? valueAt(rest, '@context');
  return typeof context === 'string' && URL.canParse(context, url) ? new URL(context, url).href : url;
}

/** The address with rel=next; undefined where none has, or the header is malformed. */
function linkOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  try {
    return LinkHeader.parse(header).rel('next')[0]?.uri;
  } catch {
    return undefined;
  }
}
