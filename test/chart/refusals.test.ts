import { describe, expect, test } from 'vitest';
import { HELMS, helm } from './helm.js';

describe.each(HELMS)('%s refuses', (by) => {
  test.each([
    ['a setting that is mistyped', 'settings.SYNC_CORN=0 3 * * *', 'SYNC_CORN'],
    ['a secret among the settings', 'settings.PRODUCTION_CLIENT_SECRET=hush', 'PRODUCTION_CLIENT_SECRET'],
    ['a setting that the chart sets', 'settings.PORT=9000', 'PORT'],
    ['a value of another name', 'workers.replicas=3', 'workers'],
    ['a member of another name', 'worker.replica=3', 'replica'],
    ['a secret of the API for all', 'secrets.shared.keys.MUSTER_ADMIN_TOKEN=admin_token', 'MUSTER_ADMIN_TOKEN'],
    ['a word for a number', 'worker.replicas=many', 'replicas'],
    ['no workers at all while few companies are due', 'keda.minReplicas=0', 'minReplicas'],
    ['a digest that is none', 'image.digest=latest', 'digest'],
    [
      'two catalogues',
      'settings.MUSTER_CATALOGUE=/a,catalogue=b',
      'catalogue and settings.MUSTER_CATALOGUE are both set; set only one of them',
    ],
    ['no image', 'image.repository=', 'image.repository: name the registry and the repository'],
    ['an ingress without a host', 'ingress.enabled=true', 'ingress.host: name the host'],
    ['no rules', 'prometheusRule.enabled=true', 'prometheusRule.rules: give a file of Prometheus rules'],
    [
      'rules without groups',
      'prometheusRule.enabled=true,prometheusRule.rules=a: b',
      'prometheusRule.rules: the file has no groups',
    ],
  ])('%s', (_, set, named) => {
    const { code, problem } = helm(['template', 'fleet'], 'minimal', { by, set: [set] });
    expect(code).not.toBe(0);
    expect(problem).toContain(named);
    expect(problem).not.toContain('hush');
  });
});
