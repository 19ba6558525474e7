#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void spin(long n){ volatile long s=0; for(long i=0;i<n;i++) s+=i; }
__attribute__((noinline)) static void hold(void){ pthread_mutex_lock(&lock); usleep(1000); spin(100000); pthread_mutex_unlock(&lock); }
static void *work(void *a){ char name[16]; snprintf(name,16,"waiter %ld",(long)a); pthread_setname_np(pthread_self(),name); for(int i=0;i<10;i++){ hold(); spin(300000);} return 0; }
int main(){ pthread_t t[2]; for(long k=0;k<2;k++) pthread_create(t+k,0,work,(void*)k); for(int k=0;k<2;k++) pthread_join(t[k],0); }
