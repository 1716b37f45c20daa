import type { Catalogue } from '../catalogue/endpoint.js';
import { FaultsError } from '../core/errors.js';
import { countListsByResource } from '../db/tables/overdue.js';
import { type Check, counted, type Finding, ifNotLookedAt, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** `load` throws FaultsError `invalid_catalogue`. */
export function checkCatalogue(load: () => Catalogue, access: DatabaseAccess): Check {
  return {
    name: 'catalogue',
    look: async () => {
      let names: ReadonlySet<string>;
      try {
        names = new Set(load().endpoints.map(({ resource }) => resource));
      } catch (error) {
        if (!(error instanceof FaultsError)) throw error;
        return error.faults.map(({ where, problem: what, example }) =>
          problem(`${where}: ${what}`, example ? `Write it right, for example: ${example}` : 'Write it right.'),
        );
      }
      return [ok(`${counted(names.size, 'list')}: ${[...names].join(', ')}`), ...(await forgotten(names, access))];
    },
  };
}

/** Finds lists that the database has and the catalogue no longer names. */
async function forgotten(names: ReadonlySet<string>, access: DatabaseAccess): Promise<Finding[]> {
  const known = await access.read(countListsByResource).catch(ifNotLookedAt(() => []));
  return known
    .filter(({ resource }) => !names.has(resource))
    .map(({ resource, lists }) =>
      warning(
        `the catalogue has no list ${resource} any more; its rows stay as they were, of ${counted(lists, 'company', 'companies')}`,
        `Put it back to mirror it on; its rows go with their companies, or by DROP TABLE mirror.${resource}.`,
      ),
    );
}
