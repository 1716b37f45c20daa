import type { Command } from 'commander';
import type { DiffItemModel, DiffModel } from '../../api/runs/run-diff.js';
import { openAdminClient } from './admin-client.js';
import { type ListOptions, limitOption, operatorCommand, resourceOption } from './operator-command.js';

export function registerDiff(program: Command): void {
  operatorCommand(program, 'diff', 'show what changed in a list between two runs, member by member')
    .argument('<run>', 'id of the run')
    .argument('[against]', 'id of an earlier run (default: the previous run that walked the list)')
    .addOption(resourceOption('the list; optional if the run has one'))
    .addOption(limitOption(1_000_000))
    .action(async (run: string, against: string | undefined, { resource, limit = Infinity, json, ...options }: ListOptions) => {
      const client = openAdminClient(options);
      const path = `/api/runs/${encodeURIComponent(run)}/diff`;
      let left = limit;
      let cursor: string | undefined;
      do {
        // Values are requested as texts, since parsed numbers would lose digits.
        const query = { resource, against, values: 'text', limit: Math.min(left, 500), cursor };
        const page: DiffModel = await client.get(path, query);
        for (const item of page.data.slice(0, left)) console.log(json ? JSON.stringify(item) : textOf(item));
        left -= page.data.length;
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined && left > 0);
    });
}

/** One line for the record, and one for each member. */
function textOf({ id, op, kept, changes }: DiffItemModel): string {
  const lines = changes.map(({ path, before, after }) => `  ${path}: ${shown(before)} -> ${shown(after)}`);
  return [`${op} ${id}${kept ? '' : ' (the feed no longer has both versions)'}`, ...lines].join('\n');
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : String(value);
}
