import { describe, expect, test } from 'vitest';
import { faultsOf, find, HELMS, helm, manifestsOf, template, VALUES } from './helm.js';

describe.each(HELMS)('%s', (by) => {
  test.each(VALUES)('takes the values %s, and Kubernetes takes what it makes of them', (values) => {
    const lint = helm(['lint', '--strict'], values, { by });
    expect(lint, lint.output).toMatchObject({ code: 0 });
    expect(faultsOf(template(values, { by }))).toEqual([]);
  });

  test('has both make the same', () => {
    const made = VALUES.map((values) => manifestsOf(template(values, { by })));
    expect(made).toEqual(VALUES.map((values) => manifestsOf(template(values))));
  });
});

test('without Redis, a catalogue or anything that can be switched off there is little', () => {
  const kinds = manifestsOf(template('bare')).map(({ kind }) => kind);
  expect(kinds.toSorted()).toEqual(['ConfigMap', 'ConfigMap', 'Deployment', 'Deployment', 'Service']);
});

describe('what checks the manifests', () => {
  const right = template('minimal');
  const broken = (from: string, to: string) => {
    expect(right).toContain(from);
    return faultsOf(right.replace(from, to));
  };

  test.each([
    ['a name that the type does not have', 'terminationGracePeriodSeconds:', 'terminationGraceSeconds:', 'unknown field'],
    ['a port that there is not', 'port: probes }', 'port: 99999 }', 'must be between 1 and 65535'],
    [
      'a selector that does not match',
      'replicas: 2\n  selector:\n    matchLabels: \n      app.kubernetes.io/name: muster',
      'replicas: 2\n  selector:\n    matchLabels: \n      app.kubernetes.io/name: other',
      'selector',
    ],
    ['a container that may become root', 'runAsNonRoot: true', 'runAsNonRoot: false', 'runAsNonRoot'],
    ['a volume that there is not', 'name: tmp, mountPath', 'name: temporary, mountPath', 'temporary'],
  ])('refuses %s', (_, from, to, fault) => {
    expect(broken(from, to).join('\n')).toContain(fault);
  });

  test('refuses no manifests at all', () => {
    expect(faultsOf('')).toHaveLength(1);
  });
});

test('notes name the first steps for this release', () => {
  const { output } = helm(['install', 'fleet', '--dry-run=client', '--namespace', 'records'], 'minimal');
  const [, notes = ''] = output.split('NOTES:');
  expect(notes).toContain('kubectl --namespace records exec deploy/fleet-muster-api -- /app/bin/muster doctor');
  expect(notes).toContain('https://muster.example.com');
  const named = [...notes.matchAll(/deploy\/(\S+)/g)].map(([, name]) => name);
  for (const name of named) expect(find(manifestsOf(template('minimal')), 'Deployment', name)).toBeDefined();
});
