import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { FaultsError } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import { PrivacyKey } from '../privacy/privacy-key.js';
import { BUILT_IN_CATALOGUE } from './built-in.js';
import type { Catalogue } from './endpoint.js';
import { validateCatalogue } from './validate.js';

/**
 * Loads the catalogue from the YAML or JSON file at `path`, or the built-in one without a path. `privacyKey`: base64 of 32 bytes,
 * for `hash` rules (validateCatalogue). Throws FaultsError `invalid_catalogue` with every fault.
 */
export function loadCatalogue(path?: string, privacyKey?: Secret): Catalogue {
  const key = privacyKey && new PrivacyKey(privacyKey);
  return path === undefined
    ? validateCatalogue(BUILT_IN_CATALOGUE, 'the built-in catalogue', key)
    : validateCatalogue(readCatalogue(path), path, key);
}

/** An unquoted type of two numbers. Within braces YAML would take its comma for the end of the member. */
const NUMERIC_TYPE = /(?<=: +)numeric\( *\d+ *, *\d+ *\)(?= *(?:[,}]|#|\r?$))/gm;

function readCatalogue(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8').replace(NUMERIC_TYPE, '"$&"'));
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
