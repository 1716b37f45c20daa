import type { IssueModel } from '../api/operation/issues.js';

/** The command that makes each call of the admin API. The parts of a path in braces become arguments of the command. */
const COMMANDS: Readonly<Record<string, string>> = {
  'GET /api/audit': 'audit',
  'GET /api/barriers': 'barriers',
  'GET /api/budget': 'status',
  'GET /api/certificates': 'certificates',
  'GET /api/changes': 'changes',
  'GET /api/companies': 'companies',
  'GET /api/companies/{environment}/{company}': 'companies',
  'GET /api/holds': 'holds',
  'GET /api/issues': 'issues',
  'GET /api/issues/{id}': 'issues show',
  'GET /api/notifications': 'notifications',
  'GET /api/overview': 'status',
  'GET /api/quarantined-tokens': 'quarantined-tokens',
  'GET /api/queue': 'queue',
  'GET /api/rejected': 'rejected',
  'GET /api/runs': 'runs',
  'GET /api/runs/{id}': 'runs show',
  'GET /api/runs/{id}/diff': 'diff',
  'GET /api/schema': 'schema',
  'GET /api/tokens': 'tokens',
  'POST /api/companies': 'onboard',
  'POST /api/companies/{environment}/{company}/connect-link': 'connect-link',
  'POST /api/companies/{environment}/{company}/forget': 'forget',
  'POST /api/companies/{environment}/{company}/pause': 'pause',
  'POST /api/companies/{environment}/{company}/quiet-hours': 'quiet-hours',
  'POST /api/companies/{environment}/{company}/rekey': 'rekey',
  'POST /api/companies/{environment}/{company}/resume': 'resume',
  'POST /api/companies/{environment}/{company}/sync': 'sync',
  'POST /api/companies/{environment}/{company}/try': 'try',
  'POST /api/companies/{environment}/{company}/verify': 'verify',
  'DELETE /api/companies/{environment}/{company}': 'remove',
  'POST /api/connect-links': 'connect-link',
  'POST /api/connect-links/reauthorization': 'connect-link --all',
  'POST /api/held-tokens/release': 'release-tokens',
  'POST /api/holds/approve': 'holds approve-grants',
  'POST /api/holds/{id}/approve': 'holds approve',
  'POST /api/holds/{id}/reject': 'holds reject',
  'POST /api/installation/adopt': 'adopt',
  'POST /api/installation/detach': 'detach',
  'POST /api/notifications/redeliver': 'notifications redeliver-all',
  'POST /api/notifications/{id}/redeliver': 'notifications redeliver',
  'POST /api/notifications/test': 'notifications test',
  'POST /api/runs/{id}/cancel': 'runs cancel',
  'POST /api/schema/rebuild': 'schema rebuild',
  'POST /api/syncs': 'sync',
  'POST /api/tokens': 'tokens add',
  'DELETE /api/tokens/{id}': 'tokens remove',
  'DELETE /api/quarantined-tokens/{id}': 'quarantined-tokens remove',
};

/** The options of commands for query parameters and members of bodies. */
const OPTIONS: Readonly<Record<string, string>> = {
  company_id: '--company',
  company: '--company',
  environment: '--environment',
  issue_id: '--issue',
  resource: '--resource',
  state: '--state',
  status: '--status',
};

/** Commands for which some of these options make no sense. */
const WITHOUT: Readonly<Record<string, readonly string[]>> = {
  status: ['--environment'],
  queue: ['--environment'],
  schema: ['--environment', '--resource'],
};

const CALL = /\b(GET|POST|DELETE) (\/api\/[\w/{}-]+)(\?[\w&=%.-]*)?/g;

/** The text with commands in place of calls of the API; a call that no command makes stays. */
export function callsAsCommands(text: string): string {
  return text.replaceAll(CALL, (call, method: string, path: string, query = '') => {
    const command = commandOf(method, path, Object.fromEntries(new URLSearchParams(query)));
    return command === undefined ? call : `\`${command}\``;
  });
}

/** The command for the action of an issue; a call that no command makes is shown as it is. */
export function commandOfAction({ method, path, body }: IssueModel['action']): string {
  const [place = path, query] = path.split('?');
  const command = commandOf(method, place, { ...Object.fromEntries(new URLSearchParams(query)), ...body });
  return command ?? `${method} ${path}${body ? ` ${JSON.stringify(body)}` : ''}`;
}

function commandOf(method: string, path: string, fields: Readonly<Record<string, unknown>>): string | undefined {
  for (const [call, command] of Object.entries(COMMANDS)) {
    const names = [...call.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const found = new RegExp(`^${call.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(`${method} ${path}`);
    if (!found) continue;
    const inPath = Object.fromEntries(names.map((name, n) => [name, found[n + 1]]));
    const { id, ...named } = { ...fields, ...inPath };
    return ['muster', command, id, ...Object.entries(named).flatMap(optionOf(command))].filter(Boolean).join(' ');
  }
  return undefined;
}

function optionOf(command: string) {
  return ([name, value]: [string, unknown]): string[] => {
    // `muster sync` has an option of its own for the one status that it takes.
    if (command === 'sync' && name === 'status') return [`--${String(value)}`];
    const option = OPTIONS[name];
    return option === undefined || WITHOUT[command]?.includes(option) ? [] : [option, String(value)];
  };
}
