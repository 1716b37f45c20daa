import { type Command, Option } from 'commander';
import type { z } from 'zod';
import type { CreatedToken, NamedTokenModel } from '../../api/operation/named-tokens.js';
import { ROLES, type Role } from '../../db/tables/named-tokens.js';
import { CommandFailure } from '../exit-code.js';
import { type Columns, members, print, time } from '../table.js';
import { openAdminClient } from './admin-client.js';
import { limitOption, listCommand, type OperatorOptions, operatorCommand, refuse } from './operator-command.js';

interface AddOptions extends OperatorOptions {
  readonly role: Role;
  /** ISO 8601. */
  readonly expires?: string;
}

export function registerTokens(program: Command): void {
  const tokens = program.command('tokens').description('list, make and delete tokens for people and programs');
  listCommand(tokens, 'list tokens, newest first', [limitOption(500, 100)], { path: '/api/tokens', columns: COLUMNS });

  operatorCommand(tokens, 'add', 'make a token, which is shown only once')
    .argument('<name>', 'its owner; the audit shows this name')
    .addOption(
      new Option('--role <role>', 'viewer reads, operator acts on companies, admin does everything')
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .option(
      '--expires <when>',
      'when it ends: after a span (90d, 12h, 8w) or at a time (2030-01-31); default: never',
      parseExpiry,
    )
    .addHelpText('after', '\nUse it like the admin token: MUSTER_ADMIN_TOKEN=muster_… muster status')
    .action(async (name: string, { role, expires, ...options }: AddOptions) => {
      const body = { name, role, expires_at: expires };
      const created = await openAdminClient(options).post<z.output<typeof CreatedToken>>('/api/tokens', body);
      console.log(options.json ? JSON.stringify(created) : created.token);
      // Standard output has only the token, ready for a file or a script.
      if (options.json) return;
      const until = created.expires_at === null ? 'until it is deleted' : `until ${time(created.expires_at)}`;
      console.error(`Good for ${role}s' calls, ${until}. It is shown only once: Muster keeps only its hash.`);
    });

  operatorCommand(tokens, 'remove', 'delete a token permanently')
    .argument('<name>', 'name or id of the token')
    .action(async (nameOrId: string, options: OperatorOptions) => {
      const client = openAdminClient(options);
      const all = await client.list<NamedTokenModel>('/api/tokens');
      const wanted = nameOrId.toLowerCase();
      const found = all.find(({ name }) => name.toLowerCase() === wanted) ?? all.find(({ id }) => id === nameOrId);
      if (!found) throw new CommandFailure(`There is no token with this name or id: \`muster tokens\` lists them.`);
      await client.delete(`/api/tokens/${found.id}`);
      print([{ id: found.id, name: found.name, deleted: true }], { DELETED: ({ name }) => name }, options);
    });
}

const COLUMNS: Columns<NamedTokenModel> = {
  TOKEN: ({ id }) => id,
  ...members('name', 'role'),
  CREATED: ({ created_at }) => time(created_at),
  BY: ({ created_by }) => created_by,
  EXPIRES: ({ expires_at }) => time(expires_at),
  'LAST USED': ({ last_used_at }) => time(last_used_at),
};

const HOUR_MS = 3_600_000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR_MS, d: 24 * HOUR_MS, w: 7 * 24 * HOUR_MS };

/** The time of an expiry, in ISO 8601. */
function parseExpiry(text: string): string {
  const [, count, unit] = /^([1-9]\d{0,4})([hdw])$/.exec(text) ?? [];
  if (unit !== undefined) return new Date(Date.now() + Number(count) * UNITS[unit]!).toISOString();
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at)
    ? refuse('It must be a span like 90d, 12h or 8w, or a time like 2030-01-31.')
    : new Date(at).toISOString();
}
