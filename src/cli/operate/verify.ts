import type { Command } from 'commander';
import type { RunModel } from '../../api/runs/run-model.js';
import { ENVIRONMENTS, parseCompanyId } from '../../core/company.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { openAdminClient } from './admin-client.js';
import { type CompanyOptions, companyOption, companyPath, environmentOption, operatorCommand } from './operator-command.js';
import { printRun } from './runs.js';
import { requireSuccess, waitForEnd } from './sync.js';

interface VerifyOptions extends Partial<CompanyOptions> {
  readonly resource?: readonly string[];
  readonly wait?: boolean;
}

export function registerVerify(program: Command): void {
  operatorCommand(program, 'verify', 'compare the service with the mirror of a company; this changes nothing')
    .argument('[environment]', 'environment of the service')
    .argument('[company_id]', 'GUID of the company')
    .addOption(environmentOption())
    .addOption(companyOption())
    .option('--resource <name>', 'only this list; you may repeat it', (name, names: string[] | undefined) => [
      ...(names ?? []),
      name,
    ])
    .option('--wait', 'wait until the run has ended; exit code 1 if it finds a fault or did not succeed')
    .action(async (environment: string | undefined, company: string | undefined, options: VerifyOptions) => {
      const client = openAdminClient(options);
      const path = companyPath(namedCompany(environment, company, options));
      let { run } = await client.post<{ run: RunModel }>(`${path}/verify`, { resources: options.resource });
      if (options.wait) run = await waitForEnd(client, run);
      await printRun(client, run, options);
      if (!options.wait) return;
      requireSuccess(run);
      const faults = run.walks.reduce((sum, { verify }) => sum + faultsOf(verify), 0);
      const contradicted = run.walks.filter(({ verify }) => verify?.contradiction !== undefined);
      if (contradicted.length > 0)
        throw new CommandFailure(
          `${contradicted.map(({ resource }) => resource).join(', ')} may go on after the end that a walk found: see docs/verification.md, Where a list ends.`,
        );
      if (faults > 0)
        throw new CommandFailure(`The mirror has ${faults} ${faults === 1 ? 'fault' : 'faults'}: a full resync repairs them.`);
    });
}

function faultsOf(found: RunModel['walks'][number]['verify']): number {
  return found ? found.missing + found.extra + found.different : 0;
}

function namedCompany(named: string | undefined, company: string | undefined, options: VerifyOptions) {
  const environment = ENVIRONMENTS.find((each) => each === (named ?? options.environment));
  if (environment === undefined) throw new UsageFailure('Name the environment, production or test, and then the company.');
  const companyId = parseCompanyId(company ?? options.company ?? '');
  if (companyId === undefined) throw new UsageFailure('Name the company by its GUID, after the environment.');
  return { environment, company: companyId };
}
