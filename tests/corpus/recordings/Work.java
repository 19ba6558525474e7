import java.util.*;
public class Work {
    interface Job { long run(int n); }
    static long leaf(int n) { long s = 0; for (int i = 0; i < n; i++) s += (long) i * i % 7; return s; }
    static class Sorter implements Job { public long run(int n) { Integer[] v = new Integer[n]; for (int i = 0; i < n; i++) v[i] = i * 7919 % 10007; Arrays.sort(v, (a, b) -> a - b); return v[0]; } }
    public static void main(String[] args) throws Exception {
        long s = 0; Job job = new Sorter();
        for (int k = 0; k < 300; k++) { s += leaf(400000); s += job.run(2000); }
        System.out.println(s);
    }
}
