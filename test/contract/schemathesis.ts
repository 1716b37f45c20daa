import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { pythonEnvironment, runProgram } from '../support/python-environment.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The same calls at every run. */
const SEED = 20_251;
/** Generated calls of one operation, beyond those that try out each parameter. */
const EXAMPLES = 25;
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'ignored_auth',
  'unsupported_method',
  'allow_header_conformance',
];

/** Schemathesis writes each call into its archive. It hangs when the archive has not grown for so long. */
const STALLED_MS = 120_000;

/** Installs Schemathesis, unless it is there. Throws with what to do where that fails. */
export async function installSchemathesis(): Promise<void> {
  await pythonEnvironment(here('requirements.txt'));
}

/** What a generated call was answered. */
export interface Answered {
  /** In lower case. */
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

/**
 * Sends generated calls to every operation of the document at `url`, or only to those that the filter lets through (an option of Schemathesis). `known` are things that are there, by operation and parameter or by
 * parameter alone. Throws with what Schemathesis says when an answer is not as the document has it.
 */
export async function sendGeneratedCalls(options: {
  readonly url: string;
  readonly token: string;
  readonly known: Readonly<Record<string, readonly string[]>>;
  readonly filter: readonly [option: string, value: string];
}): Promise<Answered[]> {
  const { url, token, known, filter } = options;
  const folder = mkdtempSync(`${tmpdir()}/muster-contract-`);
  const archive = `${folder}/calls.har`;
  const { PATH, HOME } = process.env;
  // No proxy: Muster is on this machine.
  const env = {
    PATH,
    HOME,
    MUSTER_KNOWN: JSON.stringify(known),
    SCHEMATHESIS_HOOKS: here('known_things.py'),
    PYTHONDONTWRITEBYTECODE: '1',
  };
  const generation = `--seed ${SEED} --max-examples ${EXAMPLES} --generation-database none --no-shrink --continue-on-failure`;
  const rest = `--request-timeout 20 --no-color --warnings off --report har --report-har-path ${archive}`;
  const args = [...generation.split(' '), ...rest.split(' '), ...filter, '--checks', CHECKS.join(',')];
  const where = [`${url}/api/openapi.json`, '--url', url, '--header', `Authorization: Bearer ${token}`];
  const stalled = new AbortController();
  let sizeBefore = -1;
  const watch = setInterval(() => {
    const size = statSync(archive, { throwIfNoEntry: false })?.size ?? 0;
    if (size === sizeBefore) stalled.abort();
    sizeBefore = size;
  }, STALLED_MS);
  try {
    const programs = await pythonEnvironment(here('requirements.txt'));
    const { code, output } = await runProgram(
      `${programs}/st`,
      ['--config-file', here('schemathesis.toml'), 'run', ...where, ...args],
      env,
      stalled.signal,
      folder,
    );
    if (code !== 0) throw new Error(`Answers are not as the document has them, or Schemathesis failed or hung:\n${output}`);
    const { log } = JSON.parse(readFileSync(archive, 'utf8')) as {
      log: { entries: { request: { method: string; url: string }; response: { status: number } }[] };
    };
    return log.entries.map(({ request, response }) => ({
      method: request.method.toLowerCase(),
      path: request.url.slice(url.length).replace(/\?.*$/s, ''),
      status: response.status,
    }));
  } finally {
    clearInterval(watch);
    rmSync(folder, { recursive: true });
  }
}
