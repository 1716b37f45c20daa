import type { Catalogue } from '../catalogue/endpoint.js';

/** A walk of the company's last run, as far as planning the next one needs it. */
export interface EarlierWalk {
  readonly id: string;
  readonly resource: string;
  readonly succeeded: boolean;
}

/** A walk that a new run will make; `continues` names the walk whose checkpoint it takes over. */
export interface PlannedWalk {
  readonly resource: string;
  readonly continues?: string;
}

export interface PlanInput {
  readonly catalogue: Catalogue;
  readonly mode: 'resume' | 'full';
  /** Resources asked for; undefined = all. */
  readonly resources?: readonly string[];
  /** Walks of the company's last run; empty when there was none, or when it is too long ago to go on from. */
  readonly lastWalks: readonly EarlierWalk[];
}

/**
 * The walks of a new run, in catalogue order. `resume` goes on with what the last run left unfinished and asks for
 * nothing that it completed; when it left nothing unfinished, or in mode `full`, everything is walked from the start.
 */
export function planWalks({ catalogue, mode, resources, lastWalks }: PlanInput): PlannedWalk[] {
  const wanted = catalogue.endpoints.map(({ resource }) => resource).filter((resource) => resources?.includes(resource) ?? true);
  if (mode === 'full') return wanted.map((resource) => ({ resource }));
  const unfinished = new Map(lastWalks.filter(({ succeeded }) => !succeeded).map(({ resource, id }) => [resource, id]));
  const resumed = wanted.filter((resource) => unfinished.has(resource));
  if (resumed.length === 0) return wanted.map((resource) => ({ resource }));
  return resumed.map((resource) => ({ resource, continues: unfinished.get(resource)! }));
}
