import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { CertificateModel } from '../../api/feed/certificates.js';
import type { Statement } from '../../certificates/statement.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { COMPANY, type Columns, members, print, time } from '../table.js';
import { type AdminClient, openAdminClient } from './admin-client.js';
import { companyOption, environmentOption, type ListOptions, limitOption, operatorCommand } from './operator-command.js';

interface CertificatesOptions extends ListOptions {
  readonly resource?: string;
  readonly output?: string;
}

/** Certificates that are shown unless said. */
const SHOWN = 20;

export function registerCertificates(program: Command): void {
  operatorCommand(program, 'certificates', 'list what is certified of verified walks, newest first, or write it to a file')
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--resource <name>', 'only those of this resource')
    .addOption(limitOption(500))
    .option('--output <path>', 'write the certificates to this file, and the keys that check them beside it')
    .addHelpText(
      'after',
      `\nThe newest ${SHOWN} unless --limit says; with --output, all of them, the oldest first.\nWhoever is given both files checks them with \`muster certificate check PATH\`.`,
    )
    .action(
      async ({ json, url, company, output, limit = output === undefined ? SHOWN : undefined, ...query }: CertificatesOptions) => {
        const client = openAdminClient({ url });
        const found = await client.list<CertificateModel>('/api/certificates', { company_id: company, ...query, limit });
        if (output === undefined) return print(found, COLUMNS, { json });
        await writeBoth(output, found, client);
        console.error(`Wrote ${found.length} certificates to ${output}, and the keys to ${keysBeside(output)}.`);
      },
    );
}

/** Where the keys stand that check the certificates of a file, unless somebody has them from elsewhere. */
export function keysBeside(path: string): string {
  return `${path}.jwks.json`;
}

/** Keys are asked for last: what signed the certificates is then among them. */
async function writeBoth(path: string, certificates: readonly CertificateModel[], client: AdminClient): Promise<void> {
  if (certificates.length === 0)
    throw new CommandFailure(
      'There is no such certificate yet: a list has its first some seconds after its first verified walk.',
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
    await writeFile(keysBeside(path), `${JSON.stringify(keys, undefined, 2)}\n`);
  } catch (cause) {
    throw new UsageFailure(`${path} cannot be written (${(cause as NodeJS.ErrnoException).code}).`, { cause });
  }
}

/** Records that the service gave, rows of the mirror, and those of the rows that the service did not give and a hold keeps. */
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
