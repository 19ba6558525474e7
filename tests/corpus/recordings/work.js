function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += (i * i) % 7; return s; }
class Sorter { run(n) { return Array.from({ length: n }, (_, i) => (i * 7919) % 10007).sort((a, b) => a - b)[0]; } }
function main() { const sorter = new Sorter(); let s = 0; for (let k = 0; k < 150; k++) { s += leaf(300000); s += sorter.run(2000); s += JSON.stringify({ k, s: 'x'.repeat(2000) + k }).length; } return s; }
console.log(main());
