import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { CertificateModel } from '../../api/feed/certificates.js';
import type { Statement } from '../../certificates/statement.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import {
  companyOption,
  environmentOption,
  type ListOptions,
  limitOption,
  operatorCommand,
  resourceOption,
} from './operator-command.js';

interface CertificatesOptions extends ListOptions {
  readonly output?: string;
}

const SHOWN = 20;

export function registerCertificates(program: Command): void {
  operatorCommand(program, 'certificates', 'list the certificates of verified walks, newest first, or write them to a file')
    .addOption(environmentOption())
    .addOption(companyOption())
    .addOption(resourceOption('only certificates of this resource'))
    .option(
      '--day <date>',
      'only certificates whose list was complete as of a time on this day (2026-11-24), in the zone of SYNC_TIMEZONE',
    )
    .addOption(limitOption(500))
    .option('--output <path>', 'write the certificates to this file, and the keys that check them to PATH.jwks.json')
    .addHelpText(
      'after',
      `\nWithout --limit it prints the newest ${SHOWN}; with --output it writes all, the oldest first.\nA person who has both files checks them with \`muster certificate check PATH\`.`,
    )
    .action(
      async ({
        json,
        wide,
        url,
        company,
        output,
        limit = output === undefined ? SHOWN : undefined,
        ...query
      }: CertificatesOptions) => {
        const client = openAdminClient({ url });
        const found = await client.list<CertificateModel>('/api/certificates', { company_id: company, ...query, limit });
        if (output === undefined) return print(found, COLUMNS, { json, wide }, 'No certificates match.');
        await writeBoth(output, found, client);
        console.error(`Wrote ${found.length} certificates to ${output}, and the keys to ${keyFileOf(output)}.`);
      },
    );
}

/** The default file of the keys that check the certificates of a file. */
export function keyFileOf(path: string): string {
  return `${path}.jwks.json`;
}

/** The keys are read last, so that they include every key that signed the certificates. */
async function writeBoth(path: string, certificates: readonly CertificateModel[], client: AdminClient): Promise<void> {
  if (certificates.length === 0)
    throw new CommandFailure(
      'There is no such certificate yet: a list gets its first one a few seconds after its first verified walk.',
    );
  const keys = await client.get('/.well-known/jwks.json');
  try {
    await writeFile(
      path,
      certificates
        .toReversed()
        .map(({ jws }) => `${jws}\n`)
        .join(''),
    );
    await writeFile(keyFileOf(path), `${JSON.stringify(keys, undefined, 2)}\n`);
  } catch (cause) {
    throw new UsageFailure(`${path} cannot be written (${(cause as NodeJS.ErrnoException).code}).`, { cause });
  }
}

/** Records received, rows of the mirror, and rows that the service did not give but a hold keeps. */
export const COUNTS: Columns<Pick<Statement, 'received' | 'records' | 'held'>> = {
  RECEIVED: ({ received }) => received,
  ROWS: ({ records }) => records,
  'KEPT BY A HOLD': ({ held }) => held,
};

const COLUMNS: Columns<CertificateModel> = {
  VERIFIED: ({ verified_at }) => time(verified_at),
  ...COMPANY,
  ...members('resource', 'proof'),
  ...COUNTS,
  THROUGH: ({ feed }) => feed.through,
  KEY: ({ kid }) => kid,
};
