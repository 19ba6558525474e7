import re
def leaf(n):
    return sum(i * i % 7 for i in range(n))
class Sorter:
    def run(self, n):
        return sorted((i * 7919 % 10007 for i in range(n)), key=lambda x: -x)[0]
def main():
    s = 0
    for _ in range(40):
        s += leaf(50000) + Sorter().run(5000) + len(re.findall(r"\w+", "a bc " * 2000))
    return s
print(main())
