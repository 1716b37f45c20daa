import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { GivenCertificate } from '../certificates/check.js';
import { keysBeside } from './certificates.js';
import { CommandFailure, UsageFailure } from './exit-code.js';
import { print } from './table.js';

interface CheckOptions {
  readonly keys?: string;
  readonly json?: boolean;
}

export function registerCertificate(program: Command): void {
  const certificate = program.command('certificate').description('check certificates that somebody gave you');
  certificate
    .command('check')
    .description('check files of certificates, one a line: signatures, and that none is missing between two of a list')
    .argument('<files...>', 'files as `muster certificates --output` writes them')
    .option('--keys <file or URL>', 'the public keys, a JWK set (default: beside the first file, FILE.jwks.json)')
    .option('--json', 'print one JSON object a line')
    .addHelpText(
      'after',
      '\nNeeds neither a running Muster nor its database or settings. Exits with 1 where something does not hold.\nKeys that came with the certificates prove only that both fit: take the keys, or their ids, from whom you trust.',
    )
    .action(check);
}

async function check(files: readonly string[], { keys = keysBeside(files[0]!), json }: CheckOptions): Promise<void> {
  const { checkCertificates } = await import('../certificates/check.js');
  const given = (await Promise.all(files.map(readCertificates))).flat();
  const { signed, findings } = await checkCertificates(given, await readKeys(keys));
  const wrong = new Set(findings.map(({ where }) => where));
  const right = signed.filter(({ where }) => !wrong.has(where));
  print(
    right.map(({ where, kid, statement }) => ({ where, kid, ...statement })),
    {
      CERTIFICATE: ({ where }) => where,
      ENVIRONMENT: ({ environment }) => environment,
      COMPANY: ({ company_id }) => company_id,
      RESOURCE: ({ resource }) => resource,
      VERIFIED: ({ verified_at }) => verified_at,
      PROOF: ({ proof }) => proof,
      RECORDS: ({ records }) => records,
      KEY: ({ kid }) => kid,
    },
    { json },
  );
  for (const { where, problem } of findings) console.error(`${where}: ${problem}`);
  if (findings.length > 0) throw new CommandFailure(`${wrong.size} of ${given.length} certificates do not hold.`);
  console.error(given.length === 1 ? 'The certificate holds.' : `All ${given.length} certificates hold.`);
}

/** Lines end in a line feed and in nothing else: with other ends, a file could be changed without being noticed. */
async function readCertificates(file: string): Promise<GivenCertificate[]> {
  const text = await readOrRefuse(file);
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((jws, n) => ({ where: lines.length === 1 ? file : `${file}, line ${n + 1}`, jws }));
}

async function readKeys(place: string) {
  const text = /^https?:\/\//.test(place)
    ? await fetchOrRefuse(place)
    : await readOrRefuse(place, ' Give the public keys by --keys.');
  try {
    const keys: unknown = JSON.parse(text);
    if (typeof keys === 'object' && keys !== null && 'keys' in keys && Array.isArray(keys.keys)) return { keys: keys.keys };
  } catch {
    // It is no JSON, which is said below.
  }
  throw new UsageFailure(`${place} is no JWK set: {"keys": [...]}, as /.well-known/jwks.json of a Muster gives it.`);
}

async function readOrRefuse(file: string, advice = ''): Promise<string> {
  try {
    return await readFile(file, 'latin1');
  } catch (cause) {
    throw new UsageFailure(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code}).${advice}`, { cause });
  }
}

async function fetchOrRefuse(url: string): Promise<string> {
  try {
    const response = await fetch(url, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(30_000) });
    if (response.ok) return await response.text();
    throw new Error(`status ${response.status}`);
  } catch (cause) {
    throw new CommandFailure(`${url} gave no keys: ${(cause as Error).message}.`, { cause });
  }
}
