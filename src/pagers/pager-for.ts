import type { Endpoint } from '../catalogue/endpoint.js';
import { ContinuationPager } from './continuation-pager.js';
import { OffsetPager } from './offset-pager.js';
import type { Pager } from './pager.js';

/** The pager of a list. Pagers keep nothing between calls: one serves any number of passes. */
export function pagerFor({ resource, pager }: Pick<Endpoint, 'resource' | 'pager'>): Pager {
  return pager.style === 'continuation' ? new ContinuationPager(resource, pager) : new OffsetPager(resource, pager);
}
