import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { CheckedCertificate, CheckedManifest, GivenCertificate } from '../../certificates/check.js';
import type { Statement } from '../../certificates/statement.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { COUNTS, keyFileOf } from '../operate/certificates.js';
import { COMPANY, type Columns, members, print } from '../table.js';
import { checkFiles } from './manifest-files.js';

interface CheckOptions {
  readonly keys?: string;
  readonly json?: boolean;
}

export function registerCertificate(program: Command): void {
  const certificate = program.command('certificate').description('check certificates that you received');
  certificate
    .command('check')
    .description('check files with one certificate a line: the signatures, and that no certificate of a list is missing')
    .argument('<files...>', 'files as `muster certificates --output` writes them, and PATH.manifest.jws of exports')
    .option('--keys <file or URL>', 'the public keys, a JWK set (default: next to the first file, FILE.jwks.json)')
    .option('--json', 'print one JSON object a line')
    .addHelpText(
      'after',
      '\nThe command needs neither a running Muster nor its database or settings. It exits with 1 if a check fails.\nFor PATH.manifest.jws of an export, it also compares the exported file if that is in the same folder.\nKeys that came with the certificates prove only that both match: get the keys, or their ids, from a source that you trust.',
    )
    .action(check);
}

async function check(files: readonly string[], { keys = keyFileOf(files[0]!), json }: CheckOptions): Promise<void> {
  const { checkCertificates } = await import('../../certificates/check.js');
  const given = (await Promise.all(files.map(readCertificates))).flat();
  const { signed, manifests, findings, middles } = await checkCertificates(given, await readKeys(keys));
  const compared = await Promise.all(
    manifests.map((manifest) => checkFiles(manifest, given.find(({ where }) => where === manifest.where)!.file)),
  );
  const all = [...findings, ...compared.flatMap((outcome) => outcome.findings)];
  const wrong = new Set(all.map(({ where }) => where));
  const isRight = ({ where }: GivenCertificate) => !wrong.has(where);
  const certificates = signed.filter(isRight).map(({ where, kid, statement }) => ({ where, kid, ...statement }));
  if (manifests.length < given.length) print(certificates, COLUMNS, { json });
  const held = manifests.filter(isRight);
  if (json) for (const { where, kid, text } of held) console.log(JSON.stringify({ where, kid, ...JSON.parse(text) }));
  else if (held.length > 0) print(held, MANIFEST_COLUMNS, { json });
  for (const { where, problem } of all) console.error(`${where}: ${problem}`);
  for (const note of [...compared.flatMap(({ notes }) => notes), ...middles.map(beginsInItsMiddle)]) console.error(note);
  const what = manifests.length === 0 ? 'certificate' : signed.length === 0 ? 'manifest' : 'text';
  if (all.length > 0) throw new CommandFailure(`${wrong.size} of ${given.length} ${what}s do not hold.`);
  console.error(given.length === 1 ? `The ${what} holds.` : `All ${given.length} ${what}s hold.`);
}

function beginsInItsMiddle({ where, statement }: CheckedCertificate): string {
  const { environment, company_id, resource } = statement;
  return `${where}: the chain of ${environment} ${company_id} ${resource} begins in its middle here: this certificate follows another one, which you did not give, so nothing before it was checked.`;
}

const COLUMNS: Columns<Statement & Pick<CheckedCertificate, 'where' | 'kid'>> = {
  CERTIFICATE: ({ where }) => where,
  ...COMPANY,
  ...members('resource'),
  VERIFIED: ({ verified_at }) => verified_at,
  ...members('proof'),
  ...COUNTS,
  KEY: ({ kid }) => kid,
};

const MANIFEST_COLUMNS: Columns<CheckedManifest> = {
  MANIFEST: ({ where }) => where,
  FILE: ({ manifest }) => manifest.file,
  RESOURCE: ({ manifest }) => manifest.resource,
  ROWS: ({ manifest }) => manifest.rows,
  PROVED: ({ manifest: { lists } }) =>
    `${lists.filter(({ verified_at }) => verified_at !== null).length} of ${lists.length} lists`,
  KEY: ({ kid }) => kid,
};

/** Only a line feed ends a line: otherwise a file could be changed without being noticed. */
async function readCertificates(file: string): Promise<(GivenCertificate & { readonly file: string })[]> {
  const text = await readOrRefuse(file);
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((jws, n) => ({ where: lines.length === 1 ? file : `${file}, line ${n + 1}`, jws, file }));
}

async function readKeys(place: string) {
  const text = /^https?:\/\//.test(place)
    ? await fetchOrRefuse(place)
    : await readOrRefuse(place, ' Give the public keys with --keys.');
  try {
    const keys: unknown = JSON.parse(text);
    if (typeof keys === 'object' && keys !== null && 'keys' in keys && Array.isArray(keys.keys)) return { keys: keys.keys };
  } catch {
    // The error below covers text that is no JSON.
  }
  throw new UsageFailure(`${place} is no JWK set: {"keys": [...]}, as /.well-known/jwks.json of Muster gives it.`);
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
