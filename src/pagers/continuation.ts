import { z } from 'zod';
import { ChainPager, type ChainState } from './chain.js';
import type { ListShape } from './envelope.js';
import type { PageInput } from './pager.js';
import type { ParsedResponse } from './parsed-response.js';
import { differ, PAGE_SIZE, PARAMETER_NAME, PLACE, type Placed } from './spec.js';
import { TOKEN_MEMBERS } from './spellings.js';

export const CONTINUATION_SCHEMA = z
  .strictObject({
    style: z.literal('continuation'),
    in: PLACE.optional(),
    tokenName: PARAMETER_NAME.default('continuationToken'),
    sizeName: PARAMETER_NAME.default('pageSize'),
    size: PAGE_SIZE,
  })
  .refine((pager) => pager.tokenName !== pager.sizeName, differ('tokenName', 'sizeName'));

/**
 * Pages by continuation token: each page gives the token of the next one.
 *
 *     -> { pageSize: 2 }                              <- { hasNextPage: true,  nextPageToken: "t1", data: [A, B] }
 *     -> { pageSize: 2, continuationToken: "t1" }     <- { hasNextPage: true,  nextPageToken: "t2", data: [] }
 *     -> { pageSize: 2, continuationToken: "t2" }     <- { hasNextPage: false, nextPageToken: null, data: [C] }    done
 *
 * Where the catalogue entry names the token's place, it may be missing, empty or a number, be in a response header, or be a member of
 * the last record (`fields: { next: last id }`), whose list ends on an empty page, or where `hasNext` says so:
 *
 *     -> { limit: 2 }                 <- { items: [{ id: 1 }, { id: 2 }], more: true }
 *     -> { limit: 2, after: 2 }       <- { items: [{ id: 3 }], more: false }                                        done
 */
export class ContinuationPager extends ChainPager {
  readonly #spec: Placed<z.output<typeof CONTINUATION_SCHEMA>>;
  readonly #isStandard: boolean;

  constructor(list: ListShape, spec: Placed<z.output<typeof CONTINUATION_SCHEMA>>) {
    const isStandard = list.fields?.next === undefined && list.fields?.hasNext === undefined;
    super(list, spec.size, isStandard ? { hasNext: 'hasNextPage', next: 'nextPageToken' } : { next: 'nextPageToken' });
    this.#spec = spec;
    this.#isStandard = isStandard;
  }

  request({ token, fewer }: ChainState): PageInput {
    const { sizeName, tokenName } = this.#spec;
    const size = typeof fewer === 'number' ? fewer : this.#spec.size;
    if (this.#spec.in === 'body') return { body: { [sizeName]: size, ...(token !== null && { [tokenName]: token }) } };
    return { query: { [sizeName]: String(size), ...(token !== null && { [tokenName]: String(token) }) } };
  }

  protected override get canAskForFewer(): boolean {
    return true;
  }

  protected get members() {
    const { tokenName } = this.#spec;
    return { 'pager.tokenName': tokenName, 'pager.in': this.#spec.in, 'fields.next': this.fields.nameOf('next') };
  }

  protected readNext(response: ParsedResponse): ReturnType<ChainPager['readNext']> {
    const { fields } = this;
    const hasNext = fields.hasNext(response);
    const next = fields.next(response, TOKEN_MEMBERS);
    // The envelope of the service's own description is held to it: a first page that lacks a member of it is another envelope.
    const lacksNext = this.#isStandard && next.kind === 'silent' ? fields.lacking('next', undefined) : undefined;
    const lacks = fields.lacking('hasNext', hasNext) ?? lacksNext;
    const isEndTold = hasNext === false || (next.kind === 'none' && next.spelling !== 'other');
    // The description has null end the list, whatever else is said.
    const isEnd = hasNext === false || (this.#isStandard && next.kind === 'none' && next.spelling === 'null');
    if (isEnd) return { isEndTold, lacks };
    if (next.kind === 'named') return { nextToken: next.token, lacks };
    if (hasNext === true)
      return fields.fail(
        'contradicting_envelope',
        `${fields.nameOf('hasNext')} is true, but ${fields.nameOf('next')} names no page, or is missing`,
      );
    return { isEndTold, isSilent: next.kind === 'silent', lacks };
  }
}
