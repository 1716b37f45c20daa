import { distance } from 'fastest-levenshtein';
import type { Environment } from '../core/company.js';
import type { Fault } from '../core/errors.js';
import { type Check, counted, type Finding, holding, ok, problem, warning } from './check.js';

export interface ConfigurationState {
  readonly faults: readonly Fault[];
  /** The settings that are set; `file`: the one that a secret was read from. */
  readonly sources: readonly { readonly name: string; readonly secret: boolean; readonly file?: string }[];
  readonly knownNames: readonly string[];
  /** The names of all variables of the process. */
  readonly variables: readonly string[];
  readonly adminToken: AdminTokenState;
  readonly environments: readonly Environment[];
  readonly publicUrl: URL;
  /** Whether the database is one that several machines may share. */
  readonly isShared: boolean;
}

/** The admin token: from a variable, kept in a file, or not made yet. */
export type AdminTokenState =
  | { readonly kind: 'set'; readonly length: number }
  | { readonly kind: 'kept'; readonly path: string; readonly length: number; readonly isExposed: boolean }
  | { readonly kind: 'none'; readonly path: string };

/** Shorter ones could be guessed. */
const LEAST_LENGTH = 16;

/** A name that differs by so many letters is taken for a typing error. */
const FEW_LETTERS = 2;

export function checkConfiguration(state: ConfigurationState): Check {
  return {
    name: 'configuration',
    look: async () => [
      ...settings(state),
      ...secrets(state),
      ...adminToken(state),
      ...unknownVariables(state),
      ...environments(state),
    ],
  };
}

function settings({ faults, sources }: ConfigurationState): Finding[] {
  if (faults.length === 0) return [ok(`${counted(sources.length, 'setting')} set, none is wrong`)];
  return faults.map(({ where, problem: what, example }) =>
    problem(`${where}: ${what}`, example ? `Set it right, for example: ${example}` : 'Set it right.'),
  );
}

function secrets({ sources }: ConfigurationState): Finding[] {
  const found = sources.filter(({ secret }) => secret);
  if (found.length === 0) return [ok('no secret is set; what is needed is made and kept under MUSTER_HOME')];
  return [
    ok(`secrets: ${found.map(({ name, file }) => `${name} from ${file ? `the file ${file}` : 'its variable'}`).join(', ')}`),
  ];
}

function adminToken({ adminToken: token, isShared }: ConfigurationState): Finding[] {
  if (token.kind === 'none') return [ok(`the admin token is made at the first start, and kept in ${token.path}`)];
  const isKept = token.kind === 'kept';
  const found = holding(
    token.length < LEAST_LENGTH &&
      warning(
        `the admin token has ${token.length} characters, and can be guessed`,
        'Set MUSTER_ADMIN_TOKEN to 16 characters or more: openssl rand -hex 32',
      ),
    isKept &&
      token.isExposed &&
      warning(
        `others than its owner may read the admin token in ${token.path}`,
        `Run chmod 600 ${token.path}; if others may have read it, delete the file, and the next start makes a new one.`,
      ),
    isKept &&
      isShared &&
      warning(
        `the admin token is kept in ${token.path}, and every other machine makes one of its own`,
        'Set MUSTER_ADMIN_TOKEN to the same for every process.',
      ),
  );
  if (found.length > 0) return found;
  return [ok(isKept ? `the admin token is kept in ${token.path}` : 'the admin token is set')];
}

/** Reports variables whose names look like a misspelt setting. */
function unknownVariables({ variables, knownNames }: ConfigurationState): Finding[] {
  const known = new Set(knownNames.flatMap((name) => [name, `${name}_FILE`]));
  return variables
    .filter((name) => name.length > 6 && !known.has(name) && !/^(FTP_PROXY|(PRODUCTION|TEST)_BASE_URL_.+)$/.test(name))
    .flatMap((name) => {
      if (/^all_proxy$/i.test(name))
        return [
          warning(`${name} is set, and Muster does not read it`, 'Set HTTPS_PROXY and HTTP_PROXY where a proxy is to be used.'),
        ];
      const meant = knownNames.find((one) => one.length > 6 && distance(name, one) <= FEW_LETTERS);
      return meant ? [warning(`${name} is no setting of Muster`, `If ${meant} is meant, rename it.`)] : [];
    });
}

function environments({ environments: configured, publicUrl, faults }: ConfigurationState): Finding[] {
  if (configured.length === 0) {
    // With a fault among them they are set wrongly, and the fault is reported already.
    if (faults.length > 0) return [];
    const next = 'Set PRODUCTION_BASE_URL and its kin, or the TEST_… ones; `muster up --sandbox` starts a sandbox without them.';
    return [warning('no environment of the service is configured', next)];
  }
  const isLocal = /^(localhost|127\.|\[::1\])/.test(publicUrl.hostname);
  if (!isLocal || !configured.includes('production')) return [];
  const next = 'Set PUBLIC_URL to the https address under which this machine is reached from outside.';
  return [warning(`connect links lead to ${publicUrl.origin}, which customers cannot reach`, next)];
}
