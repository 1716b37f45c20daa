import type { Catalogue } from '../catalogue/endpoint.js';
import type { EarlierWalk } from '../db/tables/walks.js';

export interface PlanInput {
  readonly catalogue: Catalogue;
  readonly mode: 'resume' | 'full';
  /** The resources that were asked for; undefined = all. */
  readonly resources?: readonly string[];
  /** Walks of the company's last run; empty when there was none, or when it is too long ago to go on from. */
  readonly lastWalks: readonly Pick<EarlierWalk, 'id' | 'resource' | 'succeeded'>[];
}

/**
 * The walks of a new run, in catalogue order. `resume` goes on with the walks that the last run left unfinished, walks the lists that it
 * did not have, and passes over the lists that it completed; when it left nothing unfinished, or in mode `full`, every list is walked
 * from the start. So a list that fails again and again keeps no other list waiting. `continues` names the walk whose checkpoint a new
 * one takes over.
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
