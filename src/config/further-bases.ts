import type { Catalogue } from '../catalogue/endpoint.js';
import type { Environment } from '../core/company.js';
import type { Fault } from '../core/errors.js';
import type { ByEnvironment, ProviderSettings } from '../core/provider-settings.js';
import { safeUrl } from './setting-values.js';

// This file reads further hosts of the API that share one authorization: PRODUCTION_BASE_URL_<NAME> and TEST_BASE_URL_<NAME>.

const VARIABLE = /^(PRODUCTION|TEST)_BASE_URL_(.+)$/;
const EXAMPLE = 'https://numbers.example.com';

/** The variables that are set, of both environments. */
export function baseVariables(env: NodeJS.ProcessEnv): { readonly name: string; readonly value: string }[] {
  return Object.entries(env).flatMap(([name, text]) => {
    const value = text?.trim();
    return value && VARIABLE.test(name) ? [{ name, value }] : [];
  });
}

/** The bases of one environment by their names in the catalogue, and the faults of its variables. */
export function readBases(env: NodeJS.ProcessEnv, environment: Environment): { bases: Record<string, URL>; faults: Fault[] } {
  const bases: Record<string, URL> = {};
  const faults: Fault[] = [];
  for (const { name, value } of baseVariables(env)) {
    const [, prefix = '', suffix = ''] = VARIABLE.exec(name)!;
    if (prefix.toLowerCase() !== environment) continue;
    const read = safeUrl.safeParse(value);
    if (!/^[A-Z][A-Z0-9_]{0,40}$/.test(suffix))
      faults.push({
        where: name,
        problem: 'must have a name of A-Z, 0-9 and _ at its end, a letter first',
        example: `${prefix}_BASE_URL_NUMBERS`,
      });
    else if (read.success) bases[suffix.toLowerCase()] = read.data;
    else faults.push({ where: name, problem: read.error.issues.map(({ message }) => message).join('; '), example: EXAMPLE });
  }
  return { bases, faults };
}

/** The faults for bases that the catalogue names and a configured environment does not have. */
export function missingBases(
  { providers }: { readonly providers: ByEnvironment<ProviderSettings> },
  { endpoints }: Catalogue,
): Fault[] {
  const faults = new Map<string, Fault>();
  for (const [environment, { bases }] of Object.entries(providers)) {
    for (const { resource, base } of endpoints) {
      if (base === undefined || bases?.[base]) continue;
      const where = `${environment.toUpperCase()}_BASE_URL_${base.toUpperCase()}`;
      const problem = `is missing; the list ${resource} names "base: ${base}" in the catalogue`;
      if (!faults.has(where)) faults.set(where, { where, problem, example: EXAMPLE });
    }
  }
  return [...faults.values()];
}
