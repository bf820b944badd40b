from pathlib import Path

import pytest

from training.evaluate.jevbench import check_jevbench, jevbench

# A server that is started like ours and answers everything with equal probabilities.
EVEN = """
const http = require('node:http');
const [verb, listen, address] = process.argv.slice(2);
if (verb !== 'serve' || listen !== '--listen') process.exit(1);
const [host, port] = address.split(':');
const even = (question) => {
  if (question.type === 'noul') return { type: 'noul', noul: 0.5 };
  const isChoice = question.type === 'choice';
  const names = isChoice ? Object.keys(question.criteria) : question.criteria.map((_, i) => String(i));
  return { type: question.type, probabilities: Object.fromEntries(names.map((name) => [name, 1 / names.length])) };
};
http.createServer((request, response) => {
  let body = '';
  request.on('data', (part) => { body += part; });
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    if (request.url === '/readyz') return response.end('{}');
    const { questions } = JSON.parse(body);
    const answers = Object.fromEntries(Object.entries(questions).map(([key, question]) => [key, even(question)]));
    response.end(JSON.stringify({ answers }));
  });
}).listen(Number(port), host);
"""


def test_the_served_model_is_asked_and_its_scores_come_back(tmp_path, monkeypatch):
    (tmp_path / "svc.js").write_text(EVEN)
    monkeypatch.chdir(tmp_path)
    check_jevbench(Path("svc.js"))
    found = jevbench(Path(), Path("svc.js"), "examples")
    assert found and "REP" in str(found)


def test_a_server_that_does_not_start_is_told(tmp_path):
    svc = tmp_path / "svc.js"
    svc.write_text("process.exit(1);")
    with pytest.raises(ConnectionError, match="the server does not answer"):
        jevbench(tmp_path, svc, "examples")


def test_a_suite_that_ends_with_an_error_is_told(tmp_path):
    svc = tmp_path / "svc.js"
    svc.write_text(EVEN)
    with pytest.raises(ValueError, match="jevbench eval ended with exit code"):
        jevbench(tmp_path, svc, "no-such-suite")


def test_without_a_server_nothing_is_measured(tmp_path):
    with pytest.raises(FileNotFoundError):
        check_jevbench(tmp_path / "svc.js")
