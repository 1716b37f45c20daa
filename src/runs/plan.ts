import type { Catalogue } from '../catalogue/endpoint.js';
import type { EarlierWalk } from '../db/tables/walks.js';

export interface PlanInput {
  readonly catalogue: Catalogue;
  readonly mode: 'resume' | 'full';
  /** The requested resources; undefined = all. */
  readonly resources?: readonly string[];
  /** Walks of the company's last run; empty if there was none, or if it is too old to continue. */
  readonly lastWalks: readonly Pick<EarlierWalk, 'id' | 'resource' | 'succeeded'>[];
}

/**
 * The walks of a new run, in catalogue order. If the last run left walks unfinished, `resume` continues them, walks the lists that it did
 * not have, and skips the lists that it completed. Otherwise, and in mode `full`, every list is walked from the start. A list that fails
 * again and again therefore keeps no other list waiting. `continues` names the walk whose checkpoint the new walk takes over.
 */
export function planWalks({ catalogue, mode, resources, lastWalks }: PlanInput): { resource: string; continues?: string }[] {
  const wanted = catalogue.endpoints.map(({ resource }) => resource).filter((resource) => resources?.includes(resource) ?? true);
  if (mode === 'full') return wanted.map((resource) => ({ resource }));
  const last = new Map(lastWalks.map((walk) => [walk.resource, walk]));
  const isUnfinished = wanted.some((resource) => last.get(resource)?.succeeded === false);
  if (!isUnfinished) return wanted.map((resource) => ({ resource }));
  return wanted
    .filter((resource) => !last.get(resource)?.succeeded)
    .map((resource) => ({ resource, ...(last.has(resource) && { continues: last.get(resource)!.id }) }));
}
