import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { FaultsError } from '../core/errors.js';
import { BUILT_IN_CATALOGUE } from './built-in.js';
import type { Catalogue } from './endpoint.js';
import { validateCatalogue } from './validate.js';

/**
 * The catalogue of the file at `path` (YAML, of which JSON is a part), which replaces the built-in one; without a path,
 * the built-in one. Throws FaultsError `invalid_catalogue` with every fault.
 */
export function loadCatalogue(path?: string): Catalogue {
  return path === undefined
    ? validateCatalogue(BUILT_IN_CATALOGUE, 'the built-in catalogue')
    : validateCatalogue(readCatalogue(path), path);
}

function readCatalogue(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new FaultsError('invalid_catalogue', `The catalogue ${path} cannot be read.`, [
      {
        where: 'MUSTER_CATALOGUE',
        problem: problem.replace(/:$/, ''),
        example: 'the path of a YAML or JSON file, as in docs/configuration.md',
      },
    ]);
  }
}
