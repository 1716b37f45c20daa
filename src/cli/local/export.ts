import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { type Config, loadConfig } from '../../config/config.js';
import { lookAtKeys } from '../../config/kept-secrets.js';
import { type Environment, keyText, parseCompanyId } from '../../core/company.js';
import { isMusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { Destination } from '../../warehouse/export/destinations/destination.js';
import { DESTINATION_KINDS, openDestination } from '../../warehouse/export/destinations/registry.js';
import type { ExportProgress, Manifest } from '../../warehouse/export/export-resource.js';
import { EXPORT_FORMATS, type ExportFormat } from '../../warehouse/export/export-settings.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { companyOption, environmentOption, refuse } from '../operate/operator-command.js';
import { chooseCompany } from '../operate/resolve-names.js';
import { ProgressLine } from '../progress-line.js';
import { readingUrl } from './reading-url.js';

interface ExportCommandOptions {
  readonly format: ExportFormat;
  readonly output: string;
  readonly environment?: Environment;
  readonly company?: string;
  readonly raw?: boolean;
  readonly since?: string;
  readonly requireVerified?: boolean;
  readonly manifest?: string;
  readonly mode?: number;
  readonly json?: boolean;
}

const HELP = `
Run it with DATABASE_URL as the workers have it, or where the embedded PostgreSQL runs; the admin API is not needed. Rows, proofs and place in the feed are
of one snapshot. PATH.manifest.json says what is in the file: {file, resource, format, raw, rows, sha256, columns, lists, seq}, and in view_of the list of a view.
PATH.manifest.jws is the same, signed by the key of the certificates: muster certificate check PATH.manifest.jws.

LIST_history has every version of each record, LIST_changes every change, and LIST__MEMBER the elements of an array.

--output - writes to standard output, and the manifest to standard error as one line, or to --manifest, with the signed one next to it.
${DESTINATION_KINDS.flatMap(({ fileAddress, help }) => (help === undefined ? [] : [`--output ${fileAddress} ${help}\n`])).join('')}
Nothing bears the final name before it is whole. Only you can read the file, unless --mode says otherwise: there are personal data in it.`;

const ADDRESSES = DESTINATION_KINDS.map(({ fileAddress }) => fileAddress).join(', ');
const STANDARD_OUTPUT = '-';
const STOPPING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function registerExport(program: Command): void {
  program
    .command('export')
    .description('write a resource to a file, to standard output or to another destination, with a manifest')
    .argument('<resource>', 'a list (employees), or a view of one: employees_history, employees_changes, employees__jobs')
    .addOption(new Option('--format <format>', 'format of the file').choices(EXPORT_FORMATS).makeOptionMandatory())
    .requiredOption('--output <path>', `${ADDRESSES}, or - for standard output`)
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--raw', 'the records as sent (environment, company_id, id, data, …) instead of typed columns')
    .option(
      '--since <seq>',
      'only what changed after this seq, that of the last manifest: of a list each record once, with op and seq; of its _history and _changes the rows after it',
      parseSeq,
    )
    .option('--require-verified', 'write nothing where a list has no proof, or a late one (exit code 1)')
    .option('--manifest <path>', 'with --output -: file for the manifest')
    .option('--mode <octal>', 'who may read the file (default: 600)', parseMode)
    .option('--json', 'print the outcome as one JSON object a line')
    .addHelpText('after', HELP)
    .action(run);
}

async function run(resource: string, options: ExportCommandOptions): Promise<void> {
  const { format, output, json } = options;
  if (options.manifest !== undefined && output !== STANDARD_OUTPUT)
    throw new UsageFailure('--manifest goes with --output - alone: a file has its manifest beside it.');
  const isTerminal = output === STANDARD_OUTPUT && process.stdout.isTTY;
  if (isTerminal && format === 'parquet')
    throw new UsageFailure('Parquet is nothing for a terminal: send it on (| or >), or name a file.');
  const config = loadConfig(process.env);
  const [{ openDatabase }, { exportResource }, { signerOf }, { manifestSigning }] = await Promise.all([
    import('../../db/connection/database.js'),
    import('../../warehouse/export/export-resource.js'),
    import('../../certificates/certificate.js'),
    import('../../certificates/manifest-signing.js'),
  ]);
  const keys = await lookAtKeys(config);
  const db = openDatabase({ url: await readingUrl(config), poolSize: 2, applicationName: 'muster export' });
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  for (const signal of STOPPING_SIGNALS) process.once(signal, stop);
  const progress = json || output === STANDARD_OUTPUT ? undefined : new ProgressLine(resource);
  const startedAt = performance.now();
  try {
    const manifest = await exportResource({
      db,
      request: {
        resource,
        environment: options.environment,
        companyId: await companyIn(db, options),
        isRaw: options.raw,
        since: options.since,
      },
      format,
      requiresProofs: options.requireVerified,
      ...((config.signingKey || keys) && { sign: manifestSigning(db, await signerOf(config.signingKey, keys ?? [])) }),
      destination: await destinationOf(options, config),
      signal: stopping.signal,
      ...(progress && { onProgress: (done) => progress.show(...describe(done, performance.now() - startedAt)) }),
    });
    progress?.clear();
    if (output !== STANDARD_OUTPUT) console.log(json ? JSON.stringify({ output, ...manifest }) : summary(output, manifest));
  } catch (error) {
    progress?.clear();
    if (stopping.signal.aborted)
      throw new CommandFailure(`The export was called off. Nothing was left at ${output} that was not there before.`);
    if (isMusterError(error, 'unknown_resource')) throw new UsageFailure(error.message);
    throw error;
  } finally {
    for (const signal of STOPPING_SIGNALS) process.off(signal, stop);
    await db.close();
  }
}

/** The id of the company that is named, by the database: the export needs no admin API. An unknown name must not give an empty file. */
async function companyIn(db: Database, { company, environment }: ExportCommandOptions): Promise<string | undefined> {
  if (company === undefined || parseCompanyId(company) !== undefined) return company;
  const [{ findCompaniesLike }, { findCompanyNames }] = await Promise.all([
    import('../../db/tables/connection-list.js'),
    import('../../db/tables/companies.js'),
  ]);
  const keys = await findCompaniesLike(db, { search: company, ...(environment && { environment }) });
  const names = await findCompanyNames(db, keys);
  const found = keys.map((key) => ({
    environment: key.environment,
    company_id: key.companyId,
    name: names.get(keyText(key)) ?? null,
  }));
  return chooseCompany(found, company, { environment, isFilter: true }).companyId;
}

async function destinationOf(
  { output, mode, manifest }: ExportCommandOptions,
  { proxies }: Pick<Config, 'proxies'>,
): Promise<Destination> {
  if (output !== STANDARD_OUTPUT) return openDestination(output, { mode, proxies });
  const { streamDestination } = await import('../../warehouse/export/destinations/stream-destination.js');
  return streamDestination(process.stdout, async ({ text, signed }) => {
    if (manifest === undefined) return console.error(JSON.stringify(JSON.parse(text)));
    const privately = { mode: mode ?? 0o600 };
    if (signed !== undefined) await writeFile(`${manifest.replace(/\.json$/, '')}.jws`, signed, privately);
    await writeFile(manifest, text, privately);
  });
}

function describe({ rows, total }: ExportProgress, ms: number): [texts: string[], share: number | undefined] {
  const pace = Math.round((rows * 1000) / ms);
  return [
    [`${rows.toLocaleString('en')} rows, ${pace.toLocaleString('en')} a second`],
    total ? Math.min(1, rows / total) : undefined,
  ];
}

function summary(output: string, { rows, lists, seq, sha256 }: Manifest): string {
  const proved = lists.filter(({ verified_at }) => verified_at !== null).length;
  return `${output}: ${rows.toLocaleString('en')} rows; ${proved} of ${lists.length} lists proved complete; the next changes: --since ${seq}\nsha256 ${sha256}`;
}

function parseSeq(text: string): string {
  return /^\d{1,18}$/.test(text) ? text : refuse('It must be the seq of a manifest, or 0.');
}

function parseMode(text: string): number {
  return /^0?[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : refuse('It must be three octal digits, for example 640.');
}
