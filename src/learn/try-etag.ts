import { isMusterError } from '../core/errors.js';
import type { FoundPaging } from './find-paging.js';
import { inputOf } from './first-look.js';
import type { ListView } from './list-view.js';
import { type Probing, RequestsSpent } from './probing.js';

/** The usefulness of a list's ETags. */
export interface TriedEtag {
  /** The response to a request with the ETag of the first page. */
  readonly answer: 'none' | 'not-modified' | 'sent-again' | 'unknown';
  /** One ETag came with pages of different records. */
  readonly isFalse: boolean;
  readonly requests: readonly number[];
}

/** Requests the short first page with its ETag, if it has one. */
export async function tryEtag(probing: Probing, view: ListView, { size }: FoundPaging): Promise<TriedEtag> {
  const before = size?.page ?? view.reference;
  const isFalse = [...view.etags.values()].some((pages) => pages.size > 1);
  if (before.etag === undefined) return { answer: 'none', isFalse, requests: [] };
  const parameters = size ? { ...view.needed, [size.name]: before.keys.length } : view.needed;
  try {
    const { response, request } = await probing.fetch(
      view.address,
      inputOf(view.address, parameters),
      ({ status }) => (status === 304 ? 'not modified' : 'the page again, despite its ETag'),
      { ifNoneMatch: before.etag },
    );
    return { answer: response.status === 304 ? 'not-modified' : 'sent-again', isFalse, requests: [request] };
  } catch (error) {
    const isFinding = error instanceof RequestsSpent || (isMusterError(error) && error.code !== 'stopping');
    if (!isFinding) throw error;
    return { answer: 'unknown', isFalse, requests: [] };
  }
}
