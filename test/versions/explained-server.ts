import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerPrograms } from '../../src/embedded/embedded-cluster.js';
import { PostgresServer } from '../support/postgres-server.js';

/** A plan that the server has executed, as auto_explain logs it. */
export interface ExecutedPlan {
  readonly application: string;
  readonly statement: string;
  /** The planner's estimate, in its own unit, which `jit_above_cost` is compared with. */
  readonly cost: number;
  /** Settings of the session that differ from the server's built-in defaults and have a say in plans. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A server that logs the plan of every statement that it executes, those inside of functions included. */
export class ExplainedServer {
  readonly server: PostgresServer;
  readonly #logs: string;

  private constructor(server: PostgresServer, logs: string) {
    this.server = server;
    this.#logs = logs;
  }

  static async start(programs: ServerPrograms): Promise<ExplainedServer> {
    const logs = mkdtempSync(join(tmpdir(), 'muster-plans-'));
    chmodSync(logs, 0o777);
    const settings = {
      shared_preload_libraries: 'auto_explain',
      'auto_explain.log_min_duration': '0',
      'auto_explain.log_nested_statements': 'on',
      'auto_explain.log_settings': 'on',
      'auto_explain.log_format': 'json',
      logging_collector: 'on',
      log_destination: 'jsonlog',
      log_directory: logs,
      log_file_mode: '0644',
    };
    return new ExplainedServer(await PostgresServer.start({ programs, settings }), logs);
  }

  /** What was executed so far. The server must have been stopped: its log is complete then. */
  plans(): ExecutedPlan[] {
    const files = readdirSync(this.#logs).filter((name) => name.endsWith('.json'));
    const lines = files.flatMap((name) => readFileSync(join(this.#logs, name), 'utf8').split('\n'));
    return lines.filter((line) => line.includes(' plan:')).map(planOf);
  }

  async remove(): Promise<void> {
    await this.server.remove();
    rmSync(this.#logs, { recursive: true, force: true });
  }
}

function planOf(line: string): ExecutedPlan {
  const { message, application_name: application = '' } = JSON.parse(line) as { message: string; application_name?: string };
  const explained = JSON.parse(message.slice(message.indexOf('{'))) as {
    'Query Text': string;
    Plan: { 'Total Cost': number };
    Settings?: Record<string, string>;
  };
  return {
    application,
    statement: explained['Query Text'].replaceAll(/\s+/g, ' ').trim(),
    cost: explained.Plan['Total Cost'],
    settings: explained.Settings ?? {},
  };
}
